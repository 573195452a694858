"""One experiment in memory while it is being changed: the only place where rows become arrays.

A ledger is loaded under the experiment's lock, decides request after request, and hands over all changes to be written in one
transaction. It reads no clock and no history: a decision depends on the events below its own sequence number alone, which
is what makes replay possible. If the transaction fails the ledger is thrown away.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace

from service.application.randomness import random_63_bits as _token
from service.application.snapshots import Snapshots
from service.domain import (
    Arm,
    ArmRecord,
    ArmStatistics,
    Assignment,
    AssignmentState,
    Batch,
    Changes,
    Event,
    EventKind,
    Json,
    ObservationRecord,
    Progress,
    StoredReply,
)
from service.policy.base import Evidence
from service.policy.plan import Plan
from service.policy.registry import make_policy
from service.storage.lookups import Found

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from service.domain import AssignmentStatus, Experiment
    from service.policy.base import Floats
    from service.policy.memory import TargetMemory
    from service.policy.run import Run

_MICROSECONDS = 1_000_000
# So many draws at most are left out of their arms' rows for the time being.
_MOST_UNCOUNTED = 16
_PENDING = AssignmentState("pending", None, closed=True)
_PENDING_OPEN = AssignmentState("pending", None, closed=False)


class Ledger:
    """The state of one experiment and the changes made to it since it was last handed over."""

    def __init__(self, progress: Progress, records: Iterable[ArmRecord]) -> None:
        self.arms: list[Arm] = []
        self._statistics: list[ArmStatistics] = []
        self._told: dict[int, list[float]] = {}
        """First rewards by arm that are not in the statistics yet."""
        self.found = Found()
        """What was looked up for the requests that are being decided, and what they did."""
        self.recent: dict[int, Assignment] = {}
        self._positions_by_key: dict[str, int] = {}
        self._targets: Floats | None = None
        self._run: Run | None = None
        self._memory: TargetMemory | None = None
        self.plan: Plan | None = None
        self._index_of: dict[int, int] = {}
        self._uncounted: tuple[int, ...] = ()
        """The arms of lone draws that are stored but not in the stored counts of their arms."""
        self.refresh(progress, records)

    def refresh(self, progress: Progress, moved: Iterable[ArmRecord]) -> None:
        """Take over what is stored: all of it at first, later what another worker wrote meanwhile."""
        moved = progress.counted(moved)
        only_traffic = self._is_only_traffic(progress, moved)
        self._told.clear()
        self._put_plan_away()
        self.recent.clear()
        self.experiment = progress.experiment
        self.version = progress.version
        self.as_of = progress.as_of
        self.draws = progress.draws
        self.epoch = progress.epoch
        self._batch, self._plan_cursor, self._plan_averaged = progress.batch, progress.plan_cursor, progress.plan_averaged
        self._may_expire, self._observed = progress.may_expire, progress.observed
        self._snapshots = Snapshots(progress.snapshot_at, progress.snapshot_stride)
        before, self._uncounted = self._uncounted, progress.uncounted
        recounted = Counter(self._uncounted)
        recounted.subtract(before)
        for record in moved:
            recounted.pop(record.arm.position, None)
            if record.arm.position == len(self.arms):
                self.arms.append(record.arm)
                self.statistics.append(record.statistics)
            else:
                self.arms[record.arm.position] = record.arm
                self.statistics[record.arm.position] = record.statistics
        for position, times in recounted.items():
            self.statistics[position] = self.statistics[position].drawn(times)
        self._clear_changes()
        self.found = Found()
        if only_traffic:
            self._run = None
            self._stale.update(recounted, [record.arm.position for record in moved])
        else:
            self._settle()

    def _is_only_traffic(self, progress: Progress, moved: Collection[ArmRecord]) -> bool:
        """Did nothing happen but draws and rewards, none of them planned? Then the arrays stay as they are laid out."""
        return (
            bool(self.arms)
            and (self._batch, self.epoch, self.experiment) == (0, progress.epoch, progress.experiment)
            and progress.batch == 0
            and all(self.arms[record.arm.position : record.arm.position + 1] == [record.arm] for record in moved)
        )

    # -- what is known ------------------------------------------------------------------------------------------

    @property
    def progress(self) -> Progress:
        """The settings and counters as they are now."""
        return Progress(
            experiment=self.experiment,
            version=self.version,
            as_of=self.as_of,
            draws=self.draws,
            epoch=self.epoch,
            batch=self._batch,
            plan_cursor=self._plan_cursor,
            plan_averaged=self._plan_averaged,
            may_expire=self._may_expire,
            observed=self._observed,
            snapshot_at=self._snapshots.at,
            snapshot_stride=self._snapshots.stride,
            uncounted=self._uncounted,
        )

    @property
    def statistics(self) -> list[ArmStatistics]:
        """The arms' statistics. Rewards are counted when somebody looks, many at once for the price of one."""
        if self._told:
            for position, rewards in self._told.items():
                self._statistics[position] = self._statistics[position].told(rewards)
            self._told.clear()
        return self._statistics

    def position_of(self, key: str) -> int | None:
        """Where the arm with this key stands."""
        if len(self._positions_by_key) != len(self.arms):
            self._positions_by_key = {arm.key: arm.position for arm in self.arms}
        return self._positions_by_key.get(key)

    def targets(self) -> Floats:
        """The target share of each active arm, kept until a mean or a floor moves."""
        evidence = self.evidence
        if self._targets is None:
            self._targets, self._memory = self.policy.fast_targets(evidence, self._memory)
        return self._targets

    def assignment(self, draw: int) -> Assignment | None:
        """The assignment of this draw as it is now, if it was looked up or drawn lately."""
        return self.found.assignments.get(draw) or self.recent.get(draw)

    def find(self, seen: Found) -> None:
        """Take over what was looked up; what is known already is newer."""
        seen.update(self.found)
        self.found = seen

    def remember(self, most: int) -> None:
        """Keep at most so many of the last draws in mind. Most rewards are for one of them and need no look into the database."""
        for draw in list(islice(self.recent, max(0, len(self.recent) - most // 2))):
            del self.recent[draw]

    def records(self, positions: Collection[int]) -> list[ArmRecord]:
        """Arms with their statistics, the running plan included, in order."""
        statistics = self.statistics
        if self.plan is None:
            return [ArmRecord(self.arms[position], statistics[position]) for position in sorted(positions)]
        return [ArmRecord(self.arms[position], self._with_plan(position)) for position in sorted(positions)]

    # -- what can happen to it ----------------------------------------------------------------------------------

    def draw(self, unit: str | None, idempotency_key: str | None, now: int) -> Assignment:
        """Let the policy choose and record the draw. Its event is made of the assignment."""
        run, plan = self._run, self.plan
        if run is None:
            run = self._run = self.policy.run(self.evidence, self.targets)
        if run is not None:
            choice = run.next()
        else:
            choice, plan = self.policy.choose(self.evidence, self.targets, plan)
        position = self._positions[choice.index]
        self.as_of = at = max(self.as_of, now)
        self.version = sequence = self.version + 1
        self.draws = draw = self.draws + 1
        expires_at = expiry_reward = None
        state = _PENDING
        expiry = self.experiment.expiry
        if expiry is not None:
            self._may_expire = True
            expires_at = at + round(expiry.after_seconds * _MICROSECONDS)
            expiry_reward = expiry.reward
            state = _PENDING if expiry_reward is None else _PENDING_OPEN
        if plan is not self.plan and plan is not None:
            self._take_plan(plan, sequence)
        assignment = Assignment(
            draw,
            _token(),
            sequence,
            position,
            unit,
            choice.reason,
            self.epoch,
            at,
            expires_at,
            expiry_reward,
            state,
            None,
            idempotency_key,
        )
        if expiry_reward is None and plan is None:
            self._count_draw(position)
        else:
            self._count(position, state, expiry_reward)
        self._drawn.append(assignment)
        found = self.found
        found.assignments[draw] = self.recent[draw] = assignment
        if unit is not None:
            found.by_unit[unit] = draw
        if idempotency_key is not None:
            found.by_key[idempotency_key] = draw
        return assignment

    def move(
        self,
        assignment: Assignment,
        kind: EventKind,
        status: AssignmentStatus,
        reward: float | None,
        now: int,
    ) -> Assignment:
        """Bring an assignment into another state: reward, expiry, maturity, correction or void."""
        arm, draw, epoch, expiry_reward = assignment.arm, assignment.draw, assignment.epoch, assignment.expiry_reward
        before = assignment.state
        after = AssignmentState(status, reward, before.closed or kind in ("expiry", "maturity"))
        self.as_of = at = max(self.as_of, now)
        self.version = sequence = self.version + 1
        self._events.append(Event(sequence, kind, at, arm, draw, epoch, None, None, expiry_reward, before, after))
        if kind == "reward" and reward is not None and before == _PENDING and expiry_reward is None:
            if arm not in self._told:
                self._told[arm] = []
                self._unsettle(arm)
            self._told[arm].append(reward)
        else:
            self.statistics[arm] = self.statistics[arm].moving(before, after, expiry_reward, in_epoch=epoch == self.epoch)
            self._unsettle(arm)
        told = kind in ("reward", "correction")
        rewarded_at = at if told else (assignment.rewarded_at if status == "rewarded" else None)
        moved = replace(assignment, state=after, rewarded_at=rewarded_at)
        if draw in self._moved or moved.sequence > self.stored_version:
            self._moved_again.add(draw)
        self._moved.add(draw)
        self.found.assignments[draw] = moved
        if draw in self.recent:
            self.recent[draw] = moved
        return moved

    def observe(self, position: int, reward: float, name: str | None, now: int) -> None:
        """Count a reward that came without an ask."""
        state = AssignmentState("rewarded", reward, closed=True)
        event = self._record("observation", now, arm=position, epoch=self.epoch, after=state)
        self._count(position, state, None)
        self._observed = True
        if name is not None:
            record = ObservationRecord(name, position, reward, event.sequence)
            self.found.observations[name] = record
            self._observations.append(record)

    def change_settings(self, kind: EventKind, experiment: Experiment, details: dict[str, Json], now: int) -> None:
        """A lifecycle step or a patch."""
        self._record(kind, now, details=details)
        self.experiment = experiment
        self._settings_changed = True
        self._put_plan_away()
        self._settle()

    def add_arm(self, arm: Arm, details: dict[str, Json], now: int) -> None:
        """A new arm at the end; starts an epoch."""
        self._record("arm_added", now, arm=arm.position, details=details)
        self.arms.append(arm)
        self.statistics.append(ArmStatistics())
        self._added.append(arm.position)
        self._positions_by_key = {}
        self._start_epoch()

    def change_arm(self, arm: Arm, details: dict[str, Json], now: int) -> None:
        """Another name, value, floor or status; starts an epoch if the set of active arms changes."""
        self._record("arm_changed", now, arm=arm.position, details=details)
        was_active = self.arms[arm.position].active
        self.arms[arm.position] = arm
        self._touched.add(arm.position)
        self._redefined.add(arm.position)
        if arm.active != was_active:
            self._start_epoch()
        else:
            self._put_plan_away()
            self._settle()

    def note(self, kind: EventKind, details: dict[str, Json], now: int) -> None:
        """An entry for the audit log that changes nothing else."""
        self._record(kind, now, details=details)

    def keep_reply(self, reply: StoredReply) -> None:
        """Store the answer to a request with an idempotency key."""
        self.found.replies[reply.route, reply.key] = reply
        self._replies.append(reply)

    def last_event(self) -> Event:
        """The event that was recorded last; a draw's is made of its assignment."""
        return self._events[-1]

    def forget_changes(self) -> list[Batch]:
        """Drop the record of changes, as replay does; the batches that were planned meanwhile."""
        planned = self._batches
        self._clear_changes()
        self.found = Found()
        self.recent.clear()
        return planned

    def hand_over(self) -> Changes | None:
        """All changes since the last time, to be written; None if there are none."""
        if not self._events and not self._drawn and not self._replies:
            return None
        snapshots, thin = self._snapshots.pass_by(self)
        if not (self._events or self._touched or self._replies or snapshots):
            return self._hand_over_draws()
        if self._added:
            self._touched.difference_update(self._added)
            self._redefined.difference_update(self._added)
        if self._events or self._drawn:  # a reply alone moves no version, so all that other workers know must stay as it is
            self._count_uncounted()
        self._drawn_from.difference_update(self._touched, self._added)
        changes = Changes(
            progress=self.progress,
            arms=self.records(self._touched) if self._touched else [],
            redefined=self.records(self._redefined) if self._redefined else [],
            new_arms=self.records(self._added) if self._added else [],
            drawn_arms=self.records(self._drawn_from) if self._drawn_from else [],
            events=self._events,
            drawn=self._drawn,
            moved=[self.found.assignments[draw] for draw in self._moved_again] if self._moved_again else [],
            batches=self._batches,
            observations=self._observations,
            replies=self._replies,
            settings_changed=self._settings_changed,
            snapshots=snapshots,
            thin=thin,
        )
        self._clear_changes()
        return changes

    def _hand_over_draws(self) -> Changes:
        """Nothing but draws. A lone one is left out of the stored counts of its arm for the time being."""
        if len(self._drawn) == 1 and len(self._uncounted) < _MOST_UNCOUNTED:
            self._uncounted = (*self._uncounted, self._drawn[0].arm)
            drawn_arms = []
        else:
            self._count_uncounted()
            drawn_arms = self.records(self._drawn_from)
        changes = Changes(self.progress, drawn_arms=drawn_arms, drawn=self._drawn)
        self._clear_draws()
        return changes

    # -- how it is kept -----------------------------------------------------------------------------------------

    def _count_uncounted(self) -> None:
        """All arms get the counts they have."""
        self._drawn_from.update(self._uncounted)
        self._uncounted = ()

    def _clear_draws(self) -> None:
        self._drawn: list[Assignment] = []
        self._drawn_from: set[int] = set()
        self.stored_version = self.version
        """The version in the database, as soon as what was handed over is written."""

    def _clear_changes(self) -> None:
        self._clear_draws()
        self._events: list[Event] = []
        self._moved: set[int] = set()
        self._moved_again: set[int] = set()
        self._touched: set[int] = set()
        self._redefined: set[int] = set()
        self._added: list[int] = []
        self._batches: list[Batch] = []
        self._observations: list[ObservationRecord] = []
        self._replies: list[StoredReply] = []
        self._settings_changed = False

    def _settle(self) -> None:
        """Lay out the arrays over the active arms anew."""
        self.always_draws = self.experiment.status == "running" and not self.experiment.sticky
        """Is every ask with a new key a draw?"""
        self.policy = make_policy(self.experiment.policy)
        self._positions = active = [arm.position for arm in self.arms if arm.active]
        self.positions = np.array(active, np.int64)
        self._index_of = {position: index for index, position in enumerate(active)}
        sign = self.experiment.reward.sign
        counted = [self.statistics[position] for position in active]
        self._stale: set[int] = set()
        self._evidence = Evidence(
            means=np.array([_oriented_mean(one, sign) for one in counted], np.float64),
            draws=np.array([one.epoch_draws for one in counted], np.int64),
            undrawn=np.array([one.draws == 0 for one in counted], np.bool_),
            floors=np.array([self.arms[position].min_share for position in active], np.float64),
        )
        self._targets = self._run = None
        if self._batch:
            self.plan = Plan(
                batch=self._batch,
                planned=np.array([one.planned for one in counted], np.int64),
                left=np.array([one.plan_left for one in counted], np.int64),
                cursor=int(np.searchsorted(self.positions, self._plan_cursor)),
                weight_sums=np.array([one.plan_weight_sum for one in counted], np.float64),
                averaged=self._plan_averaged,
            )

    def _start_epoch(self) -> None:
        """The set of active arms changed: the tracking term starts from zero, the running plan loses the arms that left."""
        self._put_plan_away()
        for position, one in enumerate(self.statistics):
            restarted = replace(one, epoch_draws=0, plan_weight_sum=0.0)
            struck = replace(restarted, planned=0, plan_left=0)
            self.statistics[position] = restarted if self.arms[position].active else struck
            self._touched.add(position)
        self.epoch += 1
        self._plan_averaged = 0
        self._settle()

    def _record(self, kind: EventKind, now: int, *fields: Any, **named: Any) -> Event:  # noqa: ANN401 - the fields of Event
        """The next event of the sequence. Time never runs backwards in a history."""
        self.as_of = max(self.as_of, now)
        self.version += 1
        event = Event(self.version, kind, self.as_of, *fields, **named)
        self._events.append(event)
        return event

    def _count_draw(self, position: int) -> None:
        """A draw that counts as nothing yet."""
        statistics = self.statistics
        statistics[position] = statistics[position].drawn(1)
        self._drawn_from.add(position)
        self._stale.add(position)

    def _count(self, position: int, state: AssignmentState, expiry_reward: float | None) -> None:
        """Add what is new."""
        self.statistics[position] = self.statistics[position].counting(state, expiry_reward, in_epoch=True)
        self._unsettle(position)

    def _unsettle(self, position: int) -> None:
        """More than the arm's draws changed."""
        self._touched.add(position)
        self._stale.add(position)
        self._run = None

    @property
    def evidence(self) -> Evidence:
        """What the policy sees, brought up to the statistics: many changes of one arm are brought over once."""
        evidence = self._evidence
        for position in self._stale:
            index = self._index_of.get(position)
            if index is None:
                continue
            counted = self.statistics[position]
            evidence.draws[index] = counted.epoch_draws
            evidence.undrawn[index] = counted.draws == 0
            mean = _oriented_mean(counted, self.experiment.reward.sign)
            if mean != evidence.means[index]:  # NaN differs from itself, which costs a recomputation and no more
                evidence.means[index] = mean
                self._targets = None
        self._stale.clear()
        return evidence

    def _take_plan(self, plan: Plan, sequence: int) -> None:
        if self.plan is None or plan.batch != self.plan.batch:
            counts = tuple(int(count) for count in plan.planned)
            self._batches.append(Batch(plan.batch, sequence, tuple(self._index_of), counts))
            self._touched.update(self._index_of)
        self.plan = plan
        self._batch, self._plan_averaged = plan.batch, plan.averaged
        # The cursor is kept as a position, which means the same after arms come and go.
        self._plan_cursor = int(self.positions[plan.cursor - 1]) + 1 if plan.cursor else 0

    def _put_plan_away(self) -> None:
        """Back into the arms' statistics, before the arrays are laid out anew from them."""
        for position in self._index_of if self.plan else ():
            self.statistics[position] = self._with_plan(position)
        self.plan = None

    def _with_plan(self, position: int) -> ArmStatistics:
        counted = self.statistics[position]
        index = self._index_of.get(position)
        if self.plan is None or index is None:
            return counted
        return replace(
            counted,
            planned=int(self.plan.planned[index]),
            plan_left=int(self.plan.left[index]),
            plan_weight_sum=float(self.plan.weight_sums[index]),
        )


def _oriented_mean(counted: ArmStatistics, sign: int) -> float:
    mean = counted.known.mean()
    return float("nan") if mean is None else sign * mean
