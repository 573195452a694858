"""Whether error counts agree: Fisher's exact test for two of them, Holm's correction for a table."""

from __future__ import annotations

from collections.abc import Sequence

from scipy import stats


def two_sample_p(errors: int, runs: int, other_errors: int, other_runs: int) -> float:
    """Fisher's exact test that two error counts come from the same probability, two-sided."""
    table = [[errors, runs - errors], [other_errors, other_runs - other_errors]]
    return float(stats.fisher_exact(table).pvalue)


def holm(p_values: Sequence[float], level: float = 0.01) -> list[bool]:
    """Which hypotheses Holm's procedure rejects at the level over the whole family."""
    rejected = [False] * len(p_values)
    for rank, place in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        if p_values[place] > level / (len(p_values) - rank):
            break
        rejected[place] = True
    return rejected
