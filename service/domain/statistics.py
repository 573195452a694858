"""What is counted of each arm and of the experiment as a whole: projections of the history, exact and reversible.

Every assignment contributes to its arm according to its state. A change of state takes the old contribution away and adds
the new one, so corrections, voids, expiries and late rewards need no cases of their own.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from service.domain.assignment import AssignmentState
from service.domain.experiment import Arm, Experiment
from service.exact import NO_REWARDS, Moments

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class ArmStatistics(msgspec.Struct, frozen=True, gc=False):
    """Sufficient statistics of one arm: no decision and no recommendation reads the history."""

    pending: int = 0
    expired: int = 0
    epoch_draws: int = 0
    """Draws of the current epoch that still count, pending ones included."""
    observed: Moments = NO_REWARDS
    """All rewards, those put there by expiry included."""
    imputed: Moments = NO_REWARDS
    """Pending draws under a numeric expiry, as the reward that silence would give them."""
    matured: Moments = NO_REWARDS
    """The rewards whose window has closed: what the intervals rest on."""
    earlier: Moments = NO_REWARDS
    """`matured` when its count last reached a power of two; empty after a correction. Recent rewards are held against it."""
    planned: int = 0
    plan_left: int = 0
    plan_weight_sum: float = 0.0
    """The arm's part in the running batch of Almost Tracking (service/policy/plan.py)."""

    @property
    def draws(self) -> int:
        """Draws that count: observations + pending."""
        return self.observed.count + self.pending

    @property
    def known(self) -> Moments:
        """What the policy's means rest on: rewards, and silence as far as a numeric expiry speaks for it."""
        return self.observed + self.imputed if self.imputed.count else self.observed

    def known_mean(self) -> float | None:
        """The mean of `known`, without making it where the sums are whole numbers."""
        observed, imputed = self.observed, self.imputed
        if not imputed.count:
            return observed.mean()
        if observed.total.shift or imputed.total.shift:
            return self.known.mean()
        return (observed.total.numerator + imputed.total.numerator) / (observed.count + imputed.count)

    def with_step(
        self, before: AssignmentState, after: AssignmentState, expiry_reward: float | None, *, in_epoch: bool
    ) -> ArmStatistics:
        """These statistics after an assignment went from one state to another."""
        left = self.with_state(before, expiry_reward, in_epoch=in_epoch, times=-1)
        return left.with_state(after, expiry_reward, in_epoch=in_epoch)

    def with_rewards(self, rewards: Sequence[float]) -> ArmStatistics:
        """The same, at once, for pending draws without a numeric expiry that got these rewards: by far the most frequent move."""
        observed = self.observed.with_rewards(rewards)
        matured = observed if self.matured is self.observed else self.matured.with_rewards(rewards)
        power, earlier = 1 << (matured.count.bit_length() - 1), self.earlier
        if power == matured.count:
            earlier = matured
        elif power > self.matured.count:
            earlier = self.matured.with_rewards(rewards[: power - self.matured.count])
        return replace(self, pending=self.pending - len(rewards), observed=observed, matured=matured, earlier=earlier)

    def with_draws(self, times: int) -> ArmStatistics:
        """These statistics after so many draws that count as nothing yet: no mean moves."""
        return replace(self, pending=self.pending + times, epoch_draws=self.epoch_draws + times)

    def with_imputed_draw(self, reward: float) -> ArmStatistics:
        """These statistics after a draw that counts as this reward for the time being."""
        return replace(self, pending=self.pending + 1, epoch_draws=self.epoch_draws + 1, imputed=self.imputed.with_reward(reward))

    def at_new_epoch(self, *, active: bool) -> ArmStatistics:
        """These statistics when the tracking term starts from zero; an arm that left has no part in the running plan any more."""
        restarted = replace(self, epoch_draws=0, plan_weight_sum=0.0)
        return restarted if active else replace(restarted, planned=0, plan_left=0)

    def with_state(self, state: AssignmentState, expiry_reward: float | None, *, in_epoch: bool, times: int = 1) -> ArmStatistics:
        """These statistics with an assignment in this state added (times = 1) or taken away (times = -1)."""
        if state.status == "voided":
            return self
        if state.status == "pending":
            imputed = self.imputed if expiry_reward is None else self.imputed.with_reward(expiry_reward, times)
            epoch_draws = self.epoch_draws + times if in_epoch else self.epoch_draws
            return replace(self, pending=self.pending + times, imputed=imputed, epoch_draws=epoch_draws)
        expired = self.expired + times if state.status == "expired" else self.expired
        if state.reward is None:  # expired and dropped: it left the draws
            return replace(self, expired=expired)
        observed = self.observed.with_reward(state.reward, times)
        matured, earlier = self.matured, self.earlier
        if state.closed:
            matured = observed if matured is self.observed else matured.with_reward(state.reward, times)
            if times < 0:
                earlier = NO_REWARDS
            elif matured.count & (matured.count - 1) == 0:
                earlier = matured
        return replace(
            self,
            expired=expired,
            epoch_draws=self.epoch_draws + times if in_epoch else self.epoch_draws,
            observed=observed,
            matured=matured,
            earlier=earlier,
        )


class ArmRecord(msgspec.Struct, frozen=True, gc=False):
    """An arm with its statistics, as stored."""

    arm: Arm
    statistics: ArmStatistics


def fingerprint_of(records: Iterable[ArmRecord]) -> str:
    """The SHA-256 of what was counted of each arm's data, without what a new epoch sets anew. An arm without data is as none."""
    digest = hashlib.sha256()
    for record in records:
        counted = record.statistics
        if counted.draws or counted.expired:
            data = (counted.pending, counted.expired, counted.observed, counted.imputed, counted.matured, counted.earlier)
            digest.update(msgspec.json.encode((record.arm.position, [str(part) for part in _flat(data)])))
    return digest.hexdigest()


def _flat(parts: Iterable[int | Moments]) -> Iterable[object]:
    for part in parts:
        yield from (part.count, part.total, part.squares) if isinstance(part, Moments) else (part,)


class Progress(msgspec.Struct, frozen=True, gc=False):
    """An experiment with its counters, as stored."""

    experiment: Experiment
    version: int
    """The last sequence number: every change of the experiment takes the next one."""
    as_of: int
    """When that change was made."""
    draws: int
    """The last draw number."""
    epoch: int
    batch: int = 0
    plan_cursor: int = 0
    plan_averaged: int = 0
    may_expire: bool = False
    """Some draw of this experiment was made under an expiry: the sweep looks at it."""
    observed: bool = False
    """Some reward came without an ask."""
    snapshot_at: int = 0
    """Sequence number of the last snapshot (service/domain/changes.py)."""
    snapshot_stride: int = 16
    uncounted: tuple[int, ...] = ()
    """The arms of the last draws, as far as their own rows do not count them yet (docs/decisions/0007)."""
    imported: int = 0
    """The observations that count: rewards that came without an ask and were not voided."""

    def counted(self, stored: Iterable[ArmRecord]) -> list[ArmRecord]:
        """Arms as they are, from their rows."""
        if not self.uncounted:
            return list(stored)
        times = Counter(self.uncounted)
        return [replace(one, statistics=one.statistics.with_draws(times[one.arm.position])) for one in stored]
