"""The tables of docs/inference.md about draws until the verdict."""

from __future__ import annotations

from benchmarks.inference_tables import load, share, table
from benchmarks.inference_verdict_baselines import ratios, together, with_interval
from service.inference.samples import Floats


def verdicts() -> str:
    """Draws to separation: against the test before, and by the weights of the policy."""

    def draws(median: float | None) -> str:
        return "more" if median is None else f"{median:,.0f}"

    rows = load("verdicts")
    cells = [
        [row["case"], row["kind"], draws(row["before"]), draws(row["now"]), "" if row["ratio"] is None else f"{row['ratio']:.2f}"]
        for row in rows
        if row["policy"] == "default"
    ]
    now: dict[str, dict[str, float | None]] = {}
    for row in rows:
        now.setdefault(row["case"], {})[row["policy"]] = row["now"]
    players = ["default", "s = 1", "s = 1.5", "uniform"]
    by_weights = [[case, *(draws(found[player]) for player in players)] for case, found in now.items() if len(found) > 1]
    head = ["means", "the default (s = 2, guard 1/2)", *players[1:]]
    return f"{table(['means', 'rewards', 'before', 'now', 'ratio'], cells)}\n\n{table(head, by_weights)}"


def rates() -> str:
    """The fewest draws that three sums, and every reward, allow."""
    found = {row["case"]: row for row in load("verdicts") if row["policy"] == "default"}
    cells = [
        [row["case"], *(f"{draws:,.0f}" for draws in (found[row["case"]]["now"], row["three_sums"], row["every_reward"]))]
        for row in load("rates")
    ]
    return table(["means", "median draws now", "three sums, at best", "every reward kept, at best"], cells)


def kept_verdicts() -> str:
    """Verdicts taken back, and wrong ones."""
    cells = [
        [
            row["case"],
            f"{row['runs']:,}",
            f"{row['decided']:,}",
            share(row["wrong"], row["runs"]),
            f"{row['taken_back']}",
            f"{row['changed_arm']}",
            f"{row['contradicted']}",
            f"{row['would_have_gone_back']:,}",
        ]
        for row in load("kept_verdicts")
    ]
    head = ["means", "experiments", "decided", "wrong", "taken back", "another arm", "contrary shown", "would have gone back"]
    return table(head, cells)


def unequal() -> str:
    """The part of the rewards that the pair test needs, by the ratio of the counts."""
    rows = load("unequal")
    shown = (0.01, 0.1, 0.3333, 1.0, 3.0, 10.0, 100.0)
    parts = {(row["case"], row["ratio"]): row["part"] for row in rows}
    cells = [
        [
            case,
            *(f"{parts[case, ratio]:.2f}" for ratio in shown),
            f"{max(row['part'] for row in rows if row['case'] == case):.2f}",
        ]
        for case in dict.fromkeys(row["case"] for row in rows)
    ]
    ratios = [f"{ratio:g} : 1" if ratio >= 1.0 else f"1 : {round(1.0 / ratio)}" for ratio in shown]
    return table(["arms, counts as", *ratios, "largest"], cells)


_KINDS = {"binary": "binary", "bounded": "Beta", "real": "Gaussian"}
_OVER = "the default's over"


def verdict_baselines() -> str:
    """Draws to separation under the default and under the baselines: medians, and the default's over each of the others'."""
    rows = load("verdict_baselines")
    policies = list(dict.fromkeys(row["policy"] for row in rows))
    medians = {(row["case"], row["policy"]): f"{row['median']:,.0f}" for row in rows}
    by_case = [
        [case, *(medians.get((case, policy), "") for policy in policies)] for case in dict.fromkeys(row["case"] for row in rows)
    ]
    found = ratios(rows)
    cells = [
        [case, *(_ratio([found[policy][case]] if case in found[policy] else []) for policy in found)] for case, *_ in by_case
    ]
    by_median = table(["median draws", "the default", *policies[1:]], by_case)
    return f"{by_median}\n\n{table([_OVER, *found], cells)}"


def verdict_means() -> str:
    """The geometric means of the ratios by kind of rewards, and how many ratios are on either side of 1 by their intervals."""
    rows = load("verdict_baselines")
    kinds, found = {row["case"]: row["kind"] for row in rows}, ratios(rows)
    cells = []
    for kind, name in _KINDS.items():
        of_kind = ([each for case, each in cases.items() if kinds[case] == kind] for cases in found.values())
        cells.append([name, *map(_ratio, of_kind)])
    cells.append(["cases with fewer : more draws", *(_beyond_chance(list(cases.values())) for cases in found.values())])
    return table([_OVER, *found], cells)


def _ratio(some: list[Floats]) -> str:
    """Of one case, or the mean of several, with its interval; empty where there is none."""
    return "{:.2f} ({:.2f} to {:.2f})".format(*with_interval(together(some))) if some else ""


def _beyond_chance(some: list[Floats]) -> str:
    """In how many cases the default needs fewer draws, and in how many more, by the interval of each."""
    ends = [with_interval(each)[1:] for each in some]
    return f"{sum(high < 1.0 for _, high in ends)} : {sum(low > 1.0 for low, _ in ends)} of {len(ends)}"
