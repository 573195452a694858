"""The history added up to any version: what a look at that version must show."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from testing.torture.stored import Stored, StoredEvent


@dataclass(slots=True)
class _Sums:
    pending: int = 0
    observations: int = 0
    total: Fraction = Fraction()


class Folded:
    """Goes forward from version to version."""

    def __init__(self, stored: Stored) -> None:
        self._events, self._place = stored.events, 0
        self._arms = [_Sums() for _ in stored.arms]
        self._positions = {arm.key: position for position, arm in enumerate(stored.arms)}
        self._arm_of_draw: dict[int, int] = {}

    def advance_to(self, version: int) -> None:
        """Add what happened up to there."""
        while self._place < len(self._events) and self._events[self._place].sequence <= version:
            self._add(self._events[self._place])
            self._place += 1

    def arm(self, key: str) -> tuple[int, int, int, float | None]:
        """(draws, pending, observations, mean) of an arm."""
        sums = self._arms[self._positions[key]]
        mean = float(sums.total / sums.observations) if sums.observations else None
        return sums.pending + sums.observations, sums.pending, sums.observations, mean

    def _add(self, event: StoredEvent) -> None:
        if event.kind == "draw" and event.draw is not None and event.arm is not None:
            self._arm_of_draw[event.draw] = event.arm
            self._arms[event.arm].pending += 1
        elif event.kind == "observation" and event.arm is not None:
            self._count(self._arms[event.arm], "rewarded", event.reward_after, 1)
        elif event.draw is not None:
            sums = self._arms[self._arm_of_draw[event.draw]]
            self._count(sums, event.status_before, event.reward_before, -1)
            self._count(sums, event.status_after, event.reward_after, 1)

    @staticmethod
    def _count(sums: _Sums, status: str | None, reward: float | None, times: int) -> None:
        if status == "pending":
            sums.pending += times
        elif status == "rewarded" and reward is not None:
            sums.observations += times
            sums.total += times * Fraction(reward)
