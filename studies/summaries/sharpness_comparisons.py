"""What the sharpness study says: where sharper weights win, where they starve the best arm, how they stand against baselines.

Two errors differ if Fisher's exact test says so at 1% (one comparison in a hundred by chance). Ratios add half an error
to both sides and are averaged geometrically.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from service.simulation.environments import INSTANCES, REAL_WORLD
from studies.count_agreement import two_sample_p
from studies.error_comparisons import CountTable, counts_of, ratio_of
from studies.lineup import BASELINES
from studies.sharpness import ALMOST, LAST_LEVEL, LEVELS, SIMPLE
from studies.summaries.worst_rates_by_level import by_level

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.simulation.session import Result

_DIFFERENT = 0.01
_LEVEL_NAMES = tuple(f"{level:.3g}" for level in (*LEVELS, LAST_LEVEL))


def summarise(results: Sequence[Result]) -> dict[str, Any]:
    """Ratios and wins by group, the standing against baselines, and starvation."""
    counts = counts_of(results)
    environments = list(dict.fromkeys(label for label, _ in counts))
    arms = {r.cell.environment.label: r.cell.environment.arms for r in results}
    return {
        "by_level": by_level(counts, _LEVEL_NAMES),
        "environments": {label: [draws for name, draws in counts if name == label] for label in environments},
        "levels": _LEVEL_NAMES,
        "against_one": _against_one(counts, arms),
        "against_baselines": _against_baselines(counts, arms),
        "almost_against_simple": _almost_against_simple(counts, arms),
        "starved": [
            {
                "environment": r.cell.environment.label,
                "policy": r.cell.policy,
                "draws": list(r.cell.checkpoints),
                "starved": [count / r.runs for count in r.errors],
                "runs": r.runs,
            }
            for r in results
            if r.cell.measure == "starved"
        ],
        "counts": [
            {"environment": label, "draws": draws, **{policy: list(pair) for policy, pair in found.items()}}
            for (label, draws), found in counts.items()
        ],
    }


def group_of(label: str, arms: int) -> str:
    """The kind of environment that a row stands for."""
    if label in INSTANCES:
        return "paper's instances"
    if label in REAL_WORLD:
        return "real-world"
    return f"random, {label.split(maxsplit=1)[0]}, K = {arms}"


def rewards_of(label: str) -> str:
    """The group of all environments with such rewards."""
    return "binary rewards" if label.startswith("bernoulli") else "gaussian rewards"


def _level_of(counts: CountTable, label: str, draws: int) -> str:
    """The name of the error level whose budget this is."""
    budgets = [other for name, other in counts if name == label]
    return _LEVEL_NAMES[min(budgets.index(draws), len(_LEVEL_NAMES) - 1)]


def _compare(pairs: Sequence[tuple[tuple[int, int], tuple[int, int]]]) -> dict[str, Any]:
    """Geometric mean ratio of the first to the second, and how often it is significantly better or worse."""
    logs = [math.log(ratio_of(*pair)) for pair in pairs]
    better = sum(x < 0 and two_sample_p(*a, *b) < _DIFFERENT for x, (a, b) in zip(logs, pairs, strict=True))
    worse = sum(x > 0 and two_sample_p(*a, *b) < _DIFFERENT for x, (a, b) in zip(logs, pairs, strict=True))
    return {"ratio": math.exp(sum(logs) / len(logs)), "better": better, "worse": worse, "of": len(pairs)}


def grouped(counts: CountTable, arms: dict[str, int]) -> dict[str, list[tuple[str, int]]]:
    """The (environment, draws) of every group: all, by kind of rewards, of environment, and by level of error."""
    groups: dict[str, list[tuple[str, int]]] = {}
    for label, draws in counts:
        names = (
            "all",
            rewards_of(label),
            group_of(label, arms[label]),
            f"error {100 * float(_level_of(counts, label, draws)):g}%",
        )
        for name in names:
            groups.setdefault(name, []).append((label, draws))
    return dict(sorted(groups.items(), key=lambda item: _place_of(item[0])))


def _place_of(group: str) -> tuple[int, float, str]:
    """Where a group stands in tables and figures: from the whole to the parts, by error and by number of arms."""
    kinds = ("all", "gaussian", "binary", "error", "paper", "real", "random, gaussian", "random, bernoulli")
    kind = next(place for place, start in enumerate(kinds) if group.startswith(start))
    number = 0.0
    if kinds[kind] == "error":
        number = -float(group.split()[1].rstrip("%"))
    elif "K =" in group:
        number = float(group.rpartition(" ")[2])
    return kind, number, group


def _against_one(counts: CountTable, arms: dict[str, int]) -> list[dict[str, Any]]:
    """Every sharper variant against the same policy with s = 1."""
    rows = []
    for base, *sharper in (SIMPLE, ALMOST):
        for name in sharper:
            for group, places in grouped(counts, arms).items():
                pairs = [(counts[p][name], counts[p][base]) for p in places if name in counts[p] and base in counts[p]]
                if pairs:
                    rows.append({"policy": name, "group": group, **_compare(pairs)})
    return rows


def _against_baselines(counts: CountTable, arms: dict[str, int]) -> list[dict[str, Any]]:
    """Every tracking variant against each baseline, and against the best of them in hindsight."""
    rows = []
    for name in (*SIMPLE, *ALMOST):
        for group, places in grouped(counts, arms).items():
            for baseline in (*BASELINES, "best baseline"):
                pairs = [
                    (counts[p][name], other)
                    for p in places
                    if name in counts[p] and (other := _baseline(counts[p], baseline)) is not None
                ]
                if pairs:
                    rows.append({"policy": name, "group": group, "baseline": baseline, **_compare(pairs)})
    return rows


def _almost_against_simple(counts: CountTable, arms: dict[str, int]) -> list[dict[str, Any]]:
    """Almost Tracking against Simple Tracking with the same sharpness."""
    rows = []
    for name in ALMOST:
        other = name.replace("almost", "simple")
        for group, places in grouped(counts, arms).items():
            pairs = [(counts[p][name], counts[p][other]) for p in places if name in counts[p] and other in counts[p]]
            if pairs:
                rows.append({"policy": name, "group": group, **_compare(pairs)})
    return rows


def _baseline(found: dict[str, tuple[int, int]], name: str) -> tuple[int, int] | None:
    """One baseline's count, or the lowest of all."""
    if name != "best baseline":
        return found.get(name)
    present = [found[policy] for policy in BASELINES if policy in found]
    return min(present, key=lambda pair: pair[0] / pair[1]) if present else None
