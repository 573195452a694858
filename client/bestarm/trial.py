"""A trial: an arm for a block of code, and its reward."""

from __future__ import annotations

from collections.abc import Callable

from bestarm.assignment import Assignment, Json


class Trial:
    """What a block of code shows, and how it tells what came of it: through the queue, so no page waits for it or fails by it."""

    def __init__(self, assignment: Assignment, tell: Callable[[Assignment, float], bool]) -> None:
        self.assignment = assignment
        self._tell = tell
        self._is_told = False

    @property
    def arm(self) -> str:
        """The arm to show."""
        return self.assignment.arm

    @property
    def value(self) -> Json:
        """What the arm stands for."""
        return self.assignment.value

    @property
    def is_fallback(self) -> bool:
        """Whether the arm is the fallback."""
        return self.assignment.is_fallback

    def reward(self, reward: float) -> None:
        """Queue the reward."""
        self._tell(self.assignment, reward)
        self._is_told = True

    def finish(self, otherwise: float | None) -> None:
        """The block has ended well; if it told nothing, this is the reward."""
        if otherwise is not None and not self._is_told:
            self.reward(otherwise)
