"""The choice among guarded weights by the plan of `guarded.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from studies.error_comparisons import CountTable, Pair, compared, counts_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.simulation.session import Result

JUDGED = " (judged)"
_FEW, _SOME = 5, 40


def groups_of(label: str) -> tuple[str, ...]:
    """The groups that an environment belongs to: all, its rewards, its number of arms, its structure, late rewards."""
    kind, size, structure, *_ = label.split()
    arms = int(size.removeprefix("K="))
    few = "2 to 5 arms" if arms <= _FEW else "10 and 40 arms" if arms <= _SOME else "200 and 1,000 arms"
    rewards = {"gaussian": "Gaussian rewards", "bernoulli": "binary rewards", "bounded": "bounded rewards"}[kind]
    return ("all", rewards, few, structure, *(("late rewards",) if "delay=" in label else ()))


def by_group(counts: CountTable, first: str, second: str) -> dict[str, list[Pair]]:
    """The comparisons of two policies in every group."""
    found: dict[str, list[Pair]] = {}
    for (label, _), errors in counts.items():
        if first in errors and second in errors:
            for group in groups_of(label):
                found.setdefault(group, []).append((errors[first], errors[second]))
    return found


def chosen_of(results: Sequence[Result], base: str, candidates: Sequence[str]) -> str:
    """The candidate that the plan chooses, or the base."""
    counts = counts_of([result for result in results if not is_judgement(result)])
    least, chosen = 1.0, base
    for candidate in candidates:
        found = {group: compared(pairs) for group, pairs in by_group(counts, candidate, base).items()}
        if found and not objection_to(found) and found["all"]["ratio"] < least:
            least, chosen = found["all"]["ratio"], candidate
    return chosen


def objection_to(found: dict[str, dict[str, Any]]) -> str | None:
    """Why the plan excludes a candidate with these comparisons to the base, or None."""
    if found["all"]["worse"]:
        return f"significantly more errors in {found['all']['worse']} comparisons"
    behind = [group for group in found if group.endswith(("rewards", "arms")) and found[group]["ratio"] > 1.0]
    return f"more errors in the mean of {behind[0]}" if behind else None


def is_judgement(result: Result) -> bool:
    """Was it played with fresh rewards, after the choice?"""
    return result.cell.environment.label.endswith(JUDGED)
