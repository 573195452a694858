"""What became of the lines of an import: how many of each outcome, and the first of those that were refused."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from service.domain.limits import MOST_NAMED_LINES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.application.commands.tell import Outcome, TellResult

_GOOD: frozenset[Outcome] = frozenset({"recorded", "duplicate"})


class RefusedLine(NamedTuple):
    """A line that counts nothing, and why."""

    line: int
    status: Outcome
    detail: str | None


@dataclass(slots=True)
class ImportTally:
    """Counts, and a bounded list."""

    outcomes: Counter[Outcome] = field(default_factory=Counter)
    named: list[RefusedLine] = field(default_factory=list)
    """The first refused lines, at most MOST_NAMED_LINES."""

    @property
    def lines(self) -> int:
        """All that were looked at."""
        return self.outcomes.total()

    @property
    def refused(self) -> int:
        """Those that are neither recorded nor were so before."""
        return sum(times for outcome, times in self.outcomes.items() if outcome not in _GOOD)

    def add(self, numbers: Sequence[int], results: Sequence[TellResult]) -> None:
        """Count what became of these lines."""
        for number, result in zip(numbers, results, strict=True):
            self.outcomes[result.status] += 1
            if result.status not in _GOOD and len(self.named) < MOST_NAMED_LINES:
                self.named.append(RefusedLine(number, result.status, result.detail))

    def join(self, other: ImportTally) -> None:
        """Count what another one has counted after this."""
        self.outcomes += other.outcomes
        self.named += other.named[: MOST_NAMED_LINES - len(self.named)]
