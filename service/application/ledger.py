"""One experiment in memory while it is being changed: the only place where rows become arrays.

A ledger is loaded under the experiment's lock, decides request after request, and hands over all changes to be written in one
transaction. It reads no clock and no history: a decision depends on the events below its own sequence number alone, which
is what makes replay possible. If the transaction fails the ledger is thrown away.
"""

from __future__ import annotations

from dataclasses import replace
from secrets import randbits
from typing import TYPE_CHECKING

import numpy as np

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
from service.storage.journal import Found

if TYPE_CHECKING:
    from collections.abc import Iterable

    from service.domain import AssignmentStatus, Experiment
    from service.policy.base import Floats

_MICROSECONDS = 1_000_000


class Ledger:
    """The state of one experiment and the changes made to it since it was last handed over."""

    def __init__(self, progress: Progress, records: Iterable[ArmRecord]) -> None:
        self.progress = progress
        self.arms: list[Arm] = []
        self.statistics: list[ArmStatistics] = []
        for record in records:
            self.arms.append(record.arm)
            self.statistics.append(record.statistics)
        self.found = Found()
        self._positions_by_key: dict[str, int] = {}
        self._targets: Floats | None = None
        self._clear_changes()
        self._settle()

    def refresh(self, progress: Progress, moved: Iterable[ArmRecord]) -> None:
        """Take over what another worker wrote since this ledger was last current."""
        self.progress = progress
        for record in moved:
            if record.arm.position == len(self.arms):
                self.arms.append(record.arm)
                self.statistics.append(record.statistics)
            else:
                self.arms[record.arm.position] = record.arm
                self.statistics[record.arm.position] = record.statistics
        self._clear_changes()
        self._settle()

    # -- what is known ------------------------------------------------------------------------------------------

    @property
    def experiment(self) -> Experiment:
        """The settings and status as they are now."""
        return self.progress.experiment

    def position_of(self, key: str) -> int | None:
        """Where the arm with this key stands."""
        if len(self._positions_by_key) != len(self.arms):
            self._positions_by_key = {arm.key: arm.position for arm in self.arms}
        return self._positions_by_key.get(key)

    def targets(self) -> Floats:
        """The target share of each active arm, kept until a mean or a floor moves."""
        if self._targets is None:
            self._targets = self.policy.targets(self.evidence)
        return self._targets

    def records(self, positions: Iterable[int]) -> list[ArmRecord]:
        """Arms with their statistics, the running plan included."""
        return [ArmRecord(self.arms[position], self._with_plan(position)) for position in positions]

    # -- what can happen to it ----------------------------------------------------------------------------------

    def draw(self, unit: str | None, idempotency_key: str | None, now: int) -> Assignment:
        """Let the policy choose and record the draw."""
        choice, plan = self.policy.choose(self.evidence, self.targets, self.plan)
        position = int(self.positions[choice.index])
        expiry = self.experiment.expiry
        expiry_reward = expiry.reward if expiry else None
        event = self._record(
            "draw",
            now,
            arm=position,
            draw=self.progress.draws + 1,
            epoch=self.progress.epoch,
            reason=choice.reason,
            expires_at=now + round(expiry.after_seconds * _MICROSECONDS) if expiry else None,
            expiry_reward=expiry_reward,
            after=AssignmentState("pending", None, closed=expiry_reward is None),
        )
        if plan is not self.plan:
            self._take_plan(plan, event.sequence)
        assignment = Assignment(
            draw=self.progress.draws + 1,
            token=randbits(63),
            sequence=event.sequence,
            arm=position,
            unit=unit,
            reason=choice.reason,
            epoch=self.progress.epoch,
            created_at=event.at,
            expires_at=event.expires_at,
            expiry_reward=expiry_reward,
            state=AssignmentState("pending", None, closed=expiry_reward is None),
            idempotency_key=idempotency_key,
        )
        self.progress = replace(self.progress, draws=assignment.draw, may_expire=self.progress.may_expire or expiry is not None)
        self._count(position, None, assignment.state, expiry_reward, in_epoch=True)
        self._drawn.append(assignment.draw)
        self.found.keep(assignment)
        if unit is not None:
            self.found.by_unit[unit] = assignment.draw
        if idempotency_key is not None:
            self.found.by_key[idempotency_key] = assignment.draw
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
        before = assignment.state
        after = AssignmentState(status, reward, before.closed or kind in ("expiry", "maturity"))
        event = self._record(
            kind,
            now,
            arm=assignment.arm,
            draw=assignment.draw,
            epoch=assignment.epoch,
            expiry_reward=assignment.expiry_reward,
            before=before,
            after=after,
        )
        in_epoch = assignment.epoch == self.progress.epoch
        self._count(assignment.arm, before, after, assignment.expiry_reward, in_epoch=in_epoch)
        told = kind in ("reward", "correction")
        rewarded_at = event.at if told else (assignment.rewarded_at if status == "rewarded" else None)
        moved = replace(assignment, state=after, rewarded_at=rewarded_at)
        self._moved[moved.draw] = None
        self.found.keep(moved)
        return moved

    def observe(self, position: int, reward: float, name: str | None, now: int) -> None:
        """Count a reward that came without an ask."""
        state = AssignmentState("rewarded", reward, closed=True)
        epoch = self.progress.epoch
        event = self._record("observation", now, arm=position, epoch=epoch, after=state)
        self._count(position, None, state, None, in_epoch=True)
        if name is not None:
            record = ObservationRecord(name, position, reward, event.sequence)
            self.found.observations[name] = record
            self._observations.append(record)

    def change_settings(self, kind: EventKind, experiment: Experiment, details: dict[str, Json], now: int) -> None:
        """A lifecycle step or a patch."""
        self._record(kind, now, details=details)
        self.progress = replace(self.progress, experiment=experiment)
        self._settings_changed = True
        self._settle()

    def add_arm(self, arm: Arm, details: dict[str, Json], now: int) -> None:
        """A new arm at the end; starts an epoch."""
        self._record("arm_added", now, arm=arm.position, details=details)
        self.arms.append(arm)
        self.statistics.append(ArmStatistics())
        self._added.append(arm.position)
        self._start_epoch()

    def change_arm(self, arm: Arm, details: dict[str, Json], now: int) -> None:
        """Another name, value, floor or status; starts an epoch if the set of active arms changes."""
        self._record("arm_changed", now, arm=arm.position, details=details)
        was_active = self.arms[arm.position].active
        self.arms[arm.position] = arm
        self._touched.add(arm.position)
        if arm.active != was_active:
            self._start_epoch()
        else:
            self._settle()

    def note(self, kind: EventKind, details: dict[str, Json], now: int) -> None:
        """An entry for the audit log that changes nothing else."""
        self._record(kind, now, details=details)

    def keep_reply(self, reply: StoredReply) -> None:
        """Store the answer to a request with an idempotency key."""
        self.found.replies[reply.route, reply.key] = reply
        self._replies.append(reply)

    def last_event(self) -> Event:
        """The event that was recorded last."""
        return self._events[-1]

    def forget_changes(self) -> list[Batch]:
        """Drop the record of changes, as replay does; the batches that were planned meanwhile."""
        planned = self._batches
        self._clear_changes()
        self.found = Found()
        return planned

    def hand_over(self) -> Changes | None:
        """All changes since the last time, to be written; None if there are none."""
        if not self._events and not self._replies:
            return None
        moved = [draw for draw in self._moved if draw not in set(self._drawn)]
        changes = Changes(
            progress=self.progress,
            arms=self.records(sorted(self._touched.difference(self._added))),
            new_arms=self.records(self._added),
            events=self._events,
            drawn=[self.found.assignments[draw] for draw in self._drawn],
            moved=[self.found.assignments[draw] for draw in moved],
            batches=self._batches,
            observations=self._observations,
            replies=self._replies,
            settings_changed=self._settings_changed,
        )
        self._clear_changes()
        return changes

    # -- how it is kept -----------------------------------------------------------------------------------------

    def _clear_changes(self) -> None:
        self._events: list[Event] = []
        self._drawn: list[int] = []
        self._moved: dict[int, None] = {}
        self._touched: set[int] = set()
        self._added: list[int] = []
        self._batches: list[Batch] = []
        self._observations: list[ObservationRecord] = []
        self._replies: list[StoredReply] = []
        self._settings_changed = False

    def _settle(self) -> None:
        """Lay out the arrays over the active arms anew."""
        self.policy = make_policy(self.experiment.policy)
        active = [arm.position for arm in self.arms if arm.active]
        self.positions = np.array(active, np.int64)
        self._index_of = {position: index for index, position in enumerate(active)}
        sign = self.experiment.reward.sign
        counted = [self.statistics[position] for position in active]
        self.evidence = Evidence(
            means=np.array([_oriented_mean(one, sign) for one in counted], np.float64),
            draws=np.array([one.epoch_draws for one in counted], np.int64),
            undrawn=np.array([one.draws == 0 for one in counted], np.bool_),
            floors=np.array([self.arms[position].min_share for position in active], np.float64),
        )
        self._targets = None
        self.plan: Plan | None = None
        if self.progress.batch:
            self.plan = Plan(
                batch=self.progress.batch,
                planned=np.array([one.planned for one in counted], np.int64),
                left=np.array([one.plan_left for one in counted], np.int64),
                cursor=int(np.searchsorted(self.positions, self.progress.plan_cursor)),
                weight_sums=np.array([one.plan_weight_sum for one in counted], np.float64),
                averaged=self.progress.plan_averaged,
            )

    def _start_epoch(self) -> None:
        """The set of active arms changed: the tracking term starts from zero, the running plan loses the arms that left."""
        for position, one in enumerate(self._with_plan(position) for position in range(len(self.arms))):
            restarted = replace(one, epoch_draws=0, plan_weight_sum=0.0)
            struck = replace(restarted, planned=0, plan_left=0)
            self.statistics[position] = restarted if self.arms[position].active else struck
            self._touched.add(position)
        self.progress = replace(self.progress, epoch=self.progress.epoch + 1, plan_averaged=0)
        self._settle()

    def _record(self, kind: EventKind, now: int, **fields: object) -> Event:
        """The next event of the sequence. Time never runs backwards in a history."""
        at = max(now, self.progress.as_of)
        event = Event(sequence=self.progress.version + 1, kind=kind, at=at, **fields)  # type: ignore[arg-type] # Event's own
        self.progress = replace(self.progress, version=event.sequence, as_of=at)
        self._events.append(event)
        return event

    def _count(
        self,
        position: int,
        before: AssignmentState | None,
        after: AssignmentState,
        expiry_reward: float | None,
        *,
        in_epoch: bool,
    ) -> None:
        """Take the old contribution of an assignment away, add the new one, and keep the arrays in step."""
        counted = self.statistics[position]
        if before is not None:
            counted = counted.counting(before, expiry_reward, in_epoch=in_epoch, times=-1)
        counted = counted.counting(after, expiry_reward, in_epoch=in_epoch)
        self.statistics[position] = counted
        self._touched.add(position)
        index = self._index_of.get(position)
        if index is None:
            return
        self.evidence.draws[index] = counted.epoch_draws
        self.evidence.undrawn[index] = counted.draws == 0
        mean = _oriented_mean(counted, self.experiment.reward.sign)
        if mean != self.evidence.means[index] and not (np.isnan(mean) and np.isnan(self.evidence.means[index])):
            self.evidence.means[index] = mean
            self._targets = None

    def _take_plan(self, plan: Plan | None, sequence: int) -> None:
        if plan is None:
            return
        if self.plan is None or plan.batch != self.plan.batch:
            counts = tuple(int(count) for count in plan.planned)
            self._batches.append(Batch(plan.batch, sequence, tuple(self._index_of), counts))
            self._touched.update(self._index_of)
        self.plan = plan
        # The cursor is kept as a position, which means the same after arms come and go.
        cursor = int(self.positions[plan.cursor - 1]) + 1 if plan.cursor else 0
        self.progress = replace(self.progress, batch=plan.batch, plan_cursor=cursor, plan_averaged=plan.averaged)

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
