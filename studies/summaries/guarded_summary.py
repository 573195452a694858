"""What the study of guarded weights says: the choice with its reasons, and how the chosen weights stand with fresh rewards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from studies.count_agreement import two_sample_p
from studies.error_comparisons import LEVEL, CountTable, compared, counts_of, ratio_of
from studies.guarded_choice import by_group, chosen_of, is_judgement, objection_to

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.simulation.session import Result


def summarise(results: Sequence[Result], base: str, candidates: Sequence[str], reference: str) -> dict[str, Any]:
    """The choice with its reasons, and the judgement by group."""
    choice = counts_of([result for result in results if not is_judgement(result)])
    fresh = counts_of([result for result in results if is_judgement(result)])
    chosen = chosen_of(results, base, candidates)
    others = sorted({policy for errors in fresh.values() for policy in errors} - {chosen})
    candidates_found = {name: _compared_groups(choice, name, base) for name in (reference, *candidates)}
    return {
        "chosen": chosen,
        "candidates": {
            name: {"objection": objection_to(found), "groups": found} for name, found in candidates_found.items() if found
        },
        "judgement": {other: _compared_groups(fresh, chosen, other) for other in others},
        "environments": len({label for label, _ in choice}),
        "losses": _losses(fresh, chosen, base),
    }


def _compared_groups(counts: CountTable, first: str, second: str) -> dict[str, dict[str, Any]]:
    return {group: compared(pairs) for group, pairs in by_group(counts, first, second).items()}


def _losses(counts: CountTable, chosen: str, base: str) -> list[dict[str, Any]]:
    """Where the chosen weights make significantly more errors than the base, one comparison at a time (5%)."""
    return [
        {"environment": label, "draws": draws, "chosen": list(errors[chosen]), "base": list(errors[base])}
        for (label, draws), errors in counts.items()
        if chosen in errors and base in errors and chosen != base
        if ratio_of(errors[chosen], errors[base]) > 1 and two_sample_p(*errors[chosen], *errors[base]) < LEVEL
    ]
