"""One experiment in memory: as it is, and what can happen to it.

A ledger is as good as the version it was last seen at. It decides request after request, and everything it did is written in one
transaction, on the condition that the stored version is still that one. It reads no clock and no history: a decision depends on
the events below its own sequence number alone, which is what makes replay possible. If the transaction fails the ledger is
thrown away. The policy's arrays are the allocator's, the record of changes is the change log's.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from service.domain import (
    PENDING,
    Arm,
    ArmRecord,
    ArmStatistics,
    Assignment,
    AssignmentState,
    Batch,
    Event,
    ObservationRecord,
    Progress,
    TakenStep,
    after_observation_step,
    after_step,
    state_when_drawn,
)
from service.domain.lookups import LookupResult, NotLookedUp
from service.engine.allocator import Allocator
from service.engine.change_log import ChangeLog
from service.engine.snapshots import next_version
from service.randomness import random_63_bits

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from service.domain import Changes, EventKind, Experiment, Json, StepKind, StoredReply
    from service.policy.base import Floats
    from service.policy.memory import TargetMemory


class Ledger:
    """The state of one experiment. Reading it is free; whatever changes it takes the next sequence number."""

    def __init__(self, progress: Progress, records: Iterable[ArmRecord]) -> None:
        self.arms: list[Arm] = []
        self._statistics: list[ArmStatistics] = []
        self._rewards_to_add: dict[int, list[float]] = {}
        """First rewards by arm that are not in the statistics yet."""
        self.seen = LookupResult()
        """What was looked up for the requests that are being decided, and what they did."""
        self.recent_draws: dict[int, Assignment] = {}
        """Most rewards are for one of these and need no look into the database."""
        self.uncounted: tuple[int, ...] = ()
        """The arms of lone draws that are stored but not in the stored counts of their arms."""
        self.log = ChangeLog()
        self._positions_by_key: dict[str, int] = {}
        for record in progress.counted(records):
            self._put_record(record)
        self._take_over(progress)
        self._lay_out(None)

    def refresh(self, progress: Progress, moved: Iterable[ArmRecord]) -> None:
        """Take over what another worker wrote meanwhile: the arms that it moved, and the counters."""
        moved = progress.counted(moved)
        only_traffic = self._is_only_traffic(progress, moved)
        self._rewards_to_add.clear()
        self.allocator.put_plan_away()
        recounted = Counter(progress.uncounted)
        recounted.subtract(self.uncounted)
        for record in moved:
            recounted.pop(record.arm.position, None)
            self._put_record(record)
        for position, times in recounted.items():
            self._statistics[position] = self._statistics[position].with_draws(times)
        self._take_over(progress)
        if only_traffic:
            self.allocator.changed([*recounted, *(record.arm.position for record in moved)])
        else:
            self._lay_out(self.allocator.memory)

    def _take_over(self, progress: Progress) -> None:
        """The settings and counters as stored. What was remembered of single assignments may be older."""
        self.experiment = progress.experiment
        self.version = self.stored_version = progress.version
        self.as_of, self.draws, self.epoch = progress.as_of, progress.draws, progress.epoch
        self._batch, self._plan_cursor, self._plan_averaged = progress.batch, progress.plan_cursor, progress.plan_averaged
        self.may_expire, self._observed, self._imported = progress.may_expire, progress.observed, progress.imported
        self.snapshot_at, self.snapshot_stride = progress.snapshot_at, progress.snapshot_stride
        self.next_snapshot = next_version(self.snapshot_at, self.snapshot_stride, len(self.arms))
        self.uncounted = progress.uncounted
        self.recent_draws.clear()
        self.seen = LookupResult()
        self.log.clear()

    def _put_record(self, record: ArmRecord) -> None:
        position = record.arm.position
        if position == len(self.arms):
            self.arms.append(record.arm)
            self._statistics.append(record.statistics)
        else:
            self.arms[position] = record.arm
            self._statistics[position] = record.statistics

    def _is_only_traffic(self, progress: Progress, moved: Collection[ArmRecord]) -> bool:
        """Did nothing happen but draws and rewards, none of them planned? Then the arrays stay as they are laid out."""
        if (self._batch, self.epoch, self.experiment) != (0, progress.epoch, progress.experiment) or progress.batch:
            return False
        return all(self.arms[record.arm.position : record.arm.position + 1] == [record.arm] for record in moved)

    # -- what is known ------------------------------------------------------------------------------------------

    @property
    def progress(self) -> Progress:
        """The settings and counters as they are now."""
        return Progress(
            self.experiment, self.version, self.as_of, self.draws, self.epoch, self._batch, self._plan_cursor,
            self._plan_averaged, self.may_expire, self._observed, self.snapshot_at, self.snapshot_stride, self.uncounted,
            self._imported,
        )  # fmt: skip

    @property
    def statistics(self) -> list[ArmStatistics]:
        """The arms' statistics. Rewards are counted when somebody looks, many at once for the price of one."""
        if self._rewards_to_add:
            self._count_rewards()
        return self._statistics

    def _count_rewards(self) -> None:
        for position, rewards in self._rewards_to_add.items():
            self._statistics[position] = self._statistics[position].with_rewards(rewards)
        self._rewards_to_add.clear()

    def position_of(self, key: str) -> int | None:
        """Where the arm with this key stands."""
        if len(self._positions_by_key) != len(self.arms):
            self._positions_by_key = {arm.key: arm.position for arm in self.arms}
        return self._positions_by_key.get(key)

    def targets(self) -> Floats:
        """The target share of each active arm."""
        self._count_rewards()
        return self.allocator.targets()

    def assignment(self, draw: int) -> Assignment | None:
        """The assignment of this draw as it is now, if it was looked up or drawn lately."""
        return self.seen.assignments.get(draw) or self.recent_draws.get(draw)

    def add_lookups(self, result: LookupResult) -> None:
        """Take over what was looked up; what is known already is newer."""
        result.update(self.seen)
        self.seen = result

    def records(self, positions: Collection[int]) -> list[ArmRecord]:
        """Arms with their statistics, the running plan included, in order."""
        statistics, allocator = self.statistics, self.allocator
        if allocator.plan is None:
            return [ArmRecord(self.arms[position], statistics[position]) for position in sorted(positions)]
        return [ArmRecord(self.arms[position], allocator.with_plan(position)) for position in sorted(positions)]

    # -- what can happen to it ----------------------------------------------------------------------------------

    def draw(self, unit: str | None, idempotency_key: str | None, now: int) -> Assignment:
        """Let the policy choose and record the draw. Its event is made of the assignment."""
        statistics, allocator, log = self.statistics, self.allocator, self.log
        position, choice = allocator.choose()
        self.as_of = at = max(self.as_of, now)
        self.version = sequence = self.version + 1
        self.draws = draw = self.draws + 1
        expires_at = expiry_reward = None
        expiry = self.experiment.expiry
        if expiry is not None:
            self.may_expire = True
            expires_at = expiry.window_end(at)
            expiry_reward = expiry.reward
        if allocator.plan is not None:
            self._follow_plan(position, sequence)
        assignment = Assignment(
            draw, random_63_bits(), sequence, position, unit, choice.reason, self.epoch, at, expires_at, expiry_reward,
            state_when_drawn(expiry_reward), None, idempotency_key,
        )  # fmt: skip
        if expiry_reward is None:
            statistics[position] = statistics[position].with_draws(1)
            allocator.drawn(position)
        else:
            statistics[position] = statistics[position].with_imputed_draw(expiry_reward)
            allocator.imputed(position)
            log.imputed_arms.add(position)
        log.drawn_arms.add(position)
        log.drawn.append(assignment)
        seen = self.seen
        seen.assignments[draw] = self.recent_draws[draw] = assignment
        if unit is not None:
            seen.by_unit[unit] = draw
        if idempotency_key is not None:
            seen.by_key[idempotency_key] = draw
        return assignment

    def step(self, assignment: Assignment, kind: StepKind, reward: float | None, now: int) -> Assignment:
        """Lead an assignment on: reward, expiry, maturity, correction or void."""
        arm, draw, before, expiry_reward = assignment.arm, assignment.draw, assignment.state, assignment.expiry_reward
        if arm >= len(self.arms):
            raise NotLookedUp  # another worker added the arm, and drew it, after this ledger was read
        at = max(self.as_of, now)
        moved = after_step(assignment, kind, reward, at)
        self.as_of = at
        self.version = sequence = self.version + 1
        self.log.record_step(TakenStep(sequence, kind, at, before, moved), self.stored_version)
        if kind == "reward" and reward is not None and expiry_reward is None and (before is PENDING or before == PENDING):
            waiting = self._rewards_to_add.get(arm)
            if waiting is None:
                waiting = self._rewards_to_add[arm] = []
                self._touch(arm)
            waiting.append(reward)
        else:
            self.statistics[arm] = self.statistics[arm].with_step(
                before, moved.state, expiry_reward, in_epoch=assignment.epoch == self.epoch
            )
            self._touch(arm)
        self.seen.assignments[draw] = moved
        if draw in self.recent_draws:
            self.recent_draws[draw] = moved
        return moved

    def observe(self, position: int, reward: float, name: str | None, now: int) -> None:
        """Count a reward that came without an ask."""
        state = AssignmentState("rewarded", reward, closed=True)
        event = self._record("observation", now, arm=position, epoch=self.epoch, after=state)
        self.statistics[position] = self.statistics[position].with_state(state, None, in_epoch=True)
        self._touch(position)
        self._observed, self._imported = True, self._imported + 1
        if name is not None:
            record = ObservationRecord(name, position, reward, event.sequence, self.epoch, "rewarded", event.sequence)
            self.seen.observations[name] = record
            self.log.observations.append(record)

    def change_observation(self, known: ObservationRecord, reward: float | None, now: int) -> ObservationRecord:
        """Correct a named observation, or void it (None): what it contributed to its arm goes, what it is now comes."""
        kind, changed = after_observation_step(known, reward, self.version + 1)
        arm, states, about = known.arm, (known.state, changed.state), {"observation": known.id}
        self._record(kind, now, arm, None, known.epoch, None, None, None, *states, about)
        self.statistics[arm] = self.statistics[arm].with_step(*states, None, in_epoch=known.epoch == self.epoch)
        self._touch(arm)
        self._imported += (changed.status == "rewarded") - (known.status == "rewarded")
        self.seen.observations[known.id] = self.log.changed_observations[known.id] = changed
        return changed

    def change_settings(self, kind: EventKind, experiment: Experiment, details: dict[str, Json], now: int) -> None:
        """A lifecycle move or a patch."""
        self._record(kind, now, details=details)
        self.experiment = experiment
        self.log.settings_changed = True
        self.allocator.put_plan_away()
        self._lay_out(self.allocator.memory)

    def add_arm(self, arm: Arm, details: dict[str, Json], now: int) -> None:
        """A new arm at the end; starts an epoch."""
        self._record("arm_added", now, arm=arm.position, details=details)
        self.arms.append(arm)
        self.statistics.append(ArmStatistics())
        self.log.added.append(arm.position)
        self.next_snapshot = next_version(self.snapshot_at, self.snapshot_stride, len(self.arms))
        self._start_epoch()

    def change_arm(self, arm: Arm, details: dict[str, Json], now: int) -> None:
        """Another name, value, floor or status. Other active arms start an epoch; so does a floor: it promises from then on."""
        self._record("arm_changed", now, arm=arm.position, details=details)
        before, self.arms[arm.position] = self.arms[arm.position], arm
        self.log.touched.add(arm.position)
        self.log.redefined.add(arm.position)
        other_floor = self.experiment.policy.keeps_floors and arm.active and arm.min_share != before.min_share
        if arm.active != before.active or other_floor:
            self._start_epoch()
        else:
            self.allocator.put_plan_away()
            self._lay_out(self.allocator.memory)

    def note(self, kind: EventKind, details: dict[str, Json], now: int, arm: int | None = None) -> None:
        """An entry for the audit log that changes nothing else."""
        self._record(kind, now, arm, details=details)

    def keep_reply(self, reply: StoredReply) -> None:
        """Store the answer to a request with an idempotency key."""
        self.seen.replies[reply.route, reply.key] = reply
        self.log.replies.append(reply)

    def take_changes(self) -> Changes | None:
        """All changes since the last time, to be written; None if there are none."""
        changes = self.log.take(self)
        self.stored_version = self.version
        """The version in the database, as soon as what was taken is written."""
        return changes

    def forget_changes(self) -> list[Batch]:
        """Drop the record of changes, as replay does; the batches that were planned meanwhile."""
        planned = self.log.batches
        self.log.clear()
        self.stored_version = self.version
        self.seen = LookupResult()
        self.recent_draws.clear()
        return planned

    # -- how it is kept -----------------------------------------------------------------------------------------

    def _lay_out(self, memory: TargetMemory | None) -> None:
        """Lay out the policy's arrays over the active arms anew, with what is remembered of the targets."""
        self.always_draws = self.experiment.status == "running" and not self.experiment.sticky
        """Is every ask with a new key a draw?"""
        self.allocator = Allocator(self.progress, self.arms, self.statistics, memory)

    def _start_epoch(self) -> None:
        """The set of active arms changed: the tracking term starts from zero, the running plan loses the arms that left."""
        self.allocator.put_plan_away()
        for position, one in enumerate(self.statistics):
            self.statistics[position] = one.at_new_epoch(active=self.arms[position].active)
            self.log.touched.add(position)
        self.epoch += 1
        self._plan_averaged = 0
        self._lay_out(self.allocator.memory)

    def _record(self, kind: EventKind, now: int, *fields: Any, **named: Any) -> Event:  # noqa: ANN401 - the fields of Event
        """The next event of the sequence. Time never runs backwards in a history."""
        self.as_of = max(self.as_of, now)
        self.version += 1
        event = Event(self.version, kind, self.as_of, *fields, **named)
        self.log.record(event)
        return event

    def _touch(self, position: int) -> None:
        """More than the arm's draws changed."""
        self.log.touched.add(position)
        self.allocator.changed((position,))

    def _follow_plan(self, position: int, sequence: int) -> None:
        """A draw was handed out of the plan, or a batch was planned for it: the counters and the arms' rows follow."""
        allocator, plan = self.allocator, self.allocator.plan
        if plan is None:
            return
        if plan.batch != self._batch:
            self.log.batches.append(Batch(plan.batch, sequence, tuple(allocator.active), allocator.planned()))
            self.log.touched.update(allocator.active)
        self.log.touched.add(position)
        self._batch, self._plan_averaged = plan.batch, plan.averaged
        self._plan_cursor = allocator.plan_cursor()
