"""The policy of an experiment with its arrays over the active arms: the only place where statistics become arrays.

The allocator is told which arms changed and brings its arrays up to the statistics when the next choice needs them, many changes
of one arm at once. While nothing but draws happens, a run (service/policy/run.py) makes the choices from plain lists.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from service.domain import ArmStatistics
from service.policy.base import Evidence
from service.policy.plan import Plan
from service.policy.registry import make_policy

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from service.domain import Arm, Progress
    from service.policy.base import Choice, Floats
    from service.policy.memory import TargetMemory
    from service.policy.run import Run


class Allocator:
    """Chooses the next arm. It reads the ledger's statistics and changes nothing of them but the part of a plan."""

    def __init__(
        self, progress: Progress, arms: Sequence[Arm], statistics: list[ArmStatistics], memory: TargetMemory | None = None
    ) -> None:
        """`memory` is what an earlier allocator of the experiment remembers of its targets: any is good."""
        self._statistics = statistics
        self._sign = progress.experiment.reward.sign
        self.active = [arm.position for arm in arms if arm.active]
        """Their positions, in order."""
        self.positions = np.array(self.active, np.int64)
        self._index_of = {position: index for index, position in enumerate(self.active)}
        counted = [statistics[position] for position in self.active]
        self._evidence = Evidence(
            means=np.array([_oriented_mean(one, self._sign) for one in counted], np.float64),
            draws=np.array([one.epoch_draws for one in counted], np.int64),
            undrawn=np.array([one.draws == 0 for one in counted], np.bool_),
            floors=np.array([arms[position].min_share for position in self.active], np.float64),
        )
        self.policy = make_policy(progress.experiment.policy, has_floors=bool(self._evidence.floors.any()))
        self._stale: set[int] = set()
        """Arms that changed since their entries in the arrays were made."""
        self._targets: Floats | None = None
        self._run: Run | None = None
        self.memory = memory
        self.plan = self._stored_plan(progress, counted) if progress.batch else None

    def _stored_plan(self, progress: Progress, counted: Sequence[ArmStatistics]) -> Plan:
        return Plan(
            batch=progress.batch,
            planned=np.array([one.planned for one in counted], np.int64),
            left=np.array([one.plan_left for one in counted], np.int64),
            cursor=int(np.searchsorted(self.positions, progress.plan_cursor)),
            weight_sums=np.array([one.plan_weight_sum for one in counted], np.float64),
            averaged=progress.plan_averaged,
        )

    def choose(self) -> tuple[int, Choice]:
        """The position of the next arm, and why. The draw still has to be counted, and told with `drawn` or `imputed`."""
        run = self._run
        if run is None:
            run = self._run = self.policy.run(self.evidence(), self.targets)
        if run is not None:
            choice = run.next()
        else:
            choice, self.plan = self.policy.choose(self.evidence(), self.targets, self.plan)
        return self.active[choice.index], choice

    def choose_ahead(self, count: int) -> list[Choice] | None:
        """So many choices at once, if a run makes them, with places in `active`; none of the draws may count as a reward."""
        if self._run is None:
            self._run = self.policy.run(self.evidence(), self.targets)
        return None if self._run is None or self.plan is not None else self._run.several(count)

    def drawn(self, position: int) -> None:
        """The arm that was chosen has one more draw, and no mean moved: a run knows that already."""
        self._stale.add(position)

    def imputed(self, position: int) -> None:
        """The arm that was chosen has one more draw, which counts as a reward: a run goes on from its new mean."""
        self._stale.add(position)
        run = self._run
        if run is not None:
            mean = self._statistics[position].known_mean()
            if mean is None or not run.moved(self._index_of[position], self._sign * mean):
                self._run = None

    def changed(self, positions: Iterable[int]) -> None:
        """Anything may be different about these arms, their means included."""
        self._stale.update(positions)
        self._run = None

    def evidence(self) -> Evidence:
        """What the policy sees, brought up to the statistics."""
        evidence = self._evidence
        for position in self._stale:
            index = self._index_of.get(position)
            if index is None:
                continue
            counted = self._statistics[position]
            evidence.draws[index] = counted.epoch_draws
            evidence.undrawn[index] = counted.draws == 0
            mean = _oriented_mean(counted, self._sign)
            if mean != evidence.means[index]:  # NaN differs from itself, which costs a recomputation and no more
                evidence.means[index] = mean
                self._targets = None
        self._stale.clear()
        return evidence

    def targets(self) -> Floats:
        """The target share of each active arm, kept until a mean moves."""
        evidence = self.evidence()
        if self._targets is None:
            self._targets, self.memory = self.policy.fast_targets(evidence, self.memory)
        return self._targets

    def planned(self) -> tuple[int, ...]:
        """How many draws of each active arm the running batch holds."""
        return () if self.plan is None else tuple(int(count) for count in self.plan.planned)

    def plan_cursor(self) -> int:
        """Where the plan goes on, as a position, which means the same after arms come and go."""
        cursor = 0 if self.plan is None else self.plan.cursor
        return self.active[cursor - 1] + 1 if cursor else 0

    def with_plan(self, position: int) -> ArmStatistics:
        """The arm's statistics with its part in the running batch."""
        counted, index = self._statistics[position], self._index_of.get(position)
        if self.plan is None or index is None:
            return counted
        return replace(
            counted,
            planned=int(self.plan.planned[index]),
            plan_left=int(self.plan.left[index]),
            plan_weight_sum=float(self.plan.weight_sums[index]),
        )

    def put_plan_away(self) -> None:
        """Back into the arms' statistics, before the arrays are laid out anew from them."""
        if self.plan is not None:
            for position in self.active:
                self._statistics[position] = self.with_plan(position)
            self.plan = None


def _oriented_mean(counted: ArmStatistics, sign: int) -> float:
    mean = counted.known_mean()
    return float("nan") if mean is None else sign * mean
