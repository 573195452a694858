"""Counts of errors side by side: ratios, and which of many differences are significant with Holm's correction."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from studies.count_agreement import two_sample_p

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.simulation.session import Result

LEVEL = 0.05
CountTable = dict[tuple[str, int], dict[str, tuple[int, int]]]
Pair = tuple[tuple[int, int], tuple[int, int]]


def counts_of(results: Sequence[Result]) -> CountTable:
    """(errors, runs) of every policy, by environment and draws."""
    found: CountTable = {}
    for r in results:
        if r.cell.measure == "error":
            for draws, errors in zip(r.cell.checkpoints, r.errors, strict=True):
                found.setdefault((r.cell.environment.label, draws), {})[r.cell.policy] = (errors, r.runs)
    return dict(sorted(found.items()))


def ratio_of(first: tuple[int, int], second: tuple[int, int]) -> float:
    """The ratio of two error shares, with half an error added to both."""
    (a, n), (b, m) = first, second
    return (a + 0.5) / (n + 1) / ((b + 0.5) / (m + 1))


def holm_rejections(p_values: Sequence[float], level: float = LEVEL) -> list[bool]:
    """Which hypotheses fall when the chance of any false rejection is at most the level."""
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    rejected = [False] * len(p_values)
    for rank, place in enumerate(order):
        if p_values[place] > level / (len(p_values) - rank):
            break
        rejected[place] = True
    return rejected


def compared(pairs: Sequence[Pair]) -> dict[str, Any]:
    """Geometric mean of the ratios of errors, first to second, and how many differ significantly which way."""
    logs = [math.log(ratio_of(*pair)) for pair in pairs]
    fallen = holm_rejections([two_sample_p(*first, *second) for first, second in pairs])
    return {
        "ratio": math.exp(sum(logs) / len(logs)),
        "better": sum(found and log < 0 for found, log in zip(fallen, logs, strict=True)),
        "worse": sum(found and log > 0 for found, log in zip(fallen, logs, strict=True)),
        "of": len(pairs),
        "errors": [sum(first[0] for first, _ in pairs), sum(second[0] for _, second in pairs)],
    }
