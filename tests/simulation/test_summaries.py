"""What is concluded from counts: the claims, the published table, the standing of rates."""

from __future__ import annotations

from pathlib import Path

from service.simulation.environments import INSTANCES, instance
from service.simulation.page_rates import not_below, rates_verdict
from service.simulation.runner import cell
from service.simulation.session import Result
from service.simulation.summaries import claims, published, rates, write_summary
from service.simulation.summaries.levels import by_level


def result(name: str, policy: str, budget: int, errors: int, runs: int = 10_000) -> Result:
    """A made-up outcome."""
    return Result(cell(instance(name), policy, budget), runs, (errors,))


def test_a_claim_holds_fails_or_stays_undecided() -> None:
    """It holds by clear differences only, and fails if any goes the other way."""
    sure = [result("8", "sr", 1000, 100), result("8", "simple_tracking", 1000, 90), result("8", "almost_tracking", 1000, 80)]
    for errors, verdict in ((900, "reproduced"), (20, "not reproduced"), (95, "not reproduced"), (105, "undecided")):
        bad = [result("8", f"{name}:theta0=0.26", 1000, errors) for name in ("cr_a", "cr_c")]
        assert [row["verdict"] for row in claims.judge("short-horizon", [*sure, *bad])] == [verdict]


def test_comparable_means_within_a_quarter() -> None:
    """CR on MovieLens."""
    ours = [result("movielens", "simple_tracking", 10_000, 2000), result("movielens", "almost_tracking", 10_000, 2100)]
    near = [result("movielens", name, 10_000, 1900) for name in ("cr_a", "cr_c")]
    far = [result("movielens", name, 10_000, 1000) for name in ("cr_a", "cr_c")]
    assert claims.judge("real-world", [*ours, *near])[-1]["verdict"] == "reproduced"
    assert claims.judge("real-world", [*ours, *far])[-1]["verdict"] == "not reproduced"


def test_published_rates_become_errors() -> None:
    """SR's 0.637 at T = 2,000 is 257 errors; an infinite rate is none; DSR's variants share its row."""
    assert published.published_errors("sr", 2000, 348.0) == 257
    assert published.published_errors("sr", 10_000, 348.0) == 0
    assert published.published_errors("dsr:t1=213", 2000, 348.0) == published.published_errors("dsr", 2000, 348.0)
    assert published.published_errors("uniform", 2000, 348.0) is None


def test_counts_are_judged_with_holm() -> None:
    """SR agrees with its published count, SH does not; the independent simulator agrees with both of these."""
    summary = published.summarise([result("9", "sr", 2000, 257), result("9", "sh", 2000, 544)])
    assert [row["differs"] for row in summary["rows"]] == [False, True]
    assert [row["differs"] for row in summary["independent"]] == [False, False]


def test_the_budgets_are_drawn(tmp_path: Path) -> None:
    """A point for every policy and budget with an error; none of the policy that never errs."""
    found = [result("9", "sr", 2000, 257), result("9", "uniform", 2000, 2500), result("9", "uniform", 10_000, 250)]
    write_summary("budgets", tmp_path, [*found, result("9", "cr_a", 2000, 0)], {"seed": 1})
    drawn = (tmp_path / "by-budget.svg").read_text()
    assert drawn.count('aria-roledescription="point"') == 3
    assert [title in drawn for title in (">SR<", ">Uniform<", ">CR-A<")] == [True, True, False]


def test_worst_rates_and_the_claim() -> None:
    """The worst instance decides; intervals apart are needed to be above."""
    found = [
        result("9", "simple_tracking", 1200, 100),
        result("10", "simple_tracking", 3400, 500),
        result("9", "uniform", 1200, 3000),
        result("10", "uniform", 3400, 3400),
    ]
    summary = rates.summarise(found)
    assert summary["worst"]["H1"]["simple_tracking"]["instance"] == "10"
    assert summary["claim"]["H1"] == [{"policy": "simple_tracking", "baseline": "uniform", "verdict": "above", "instances": 2}]


LEVELS = ("0.2", "0.05", "0.01", "0.001")


def test_the_claim_by_level_and_the_reach_of_a_published_rate() -> None:
    """SR passes Simple Tracking at the last level; a published rate is judged by what the first three levels could give."""
    shares = {"simple_tracking": (0.2, 0.05, 0.01, 0.001), "sr": (0.3, 0.08, 0.02, 0.0005)}
    counts = {
        (name, 1000 * (place + 1)): {policy: (round(10_000 * found[place]), 10_000) for policy, found in shares.items()}
        for name in INSTANCES
        for place in range(4)
    }
    found = by_level(counts, LEVELS)
    assert [not_below(found, "H1", "simple_tracking", place) for place in range(4)] == [[], [], [], ["sr"]]
    low, high = found["reach"]["H1"]["sr"]
    ours = [0.0, 0.0, 0.0]
    assert (
        rates_verdict("sr", {"paper": ours, "published": [low, low, high]}, found["reach"]["H1"])
        == "not pinned down by the paper"
    )
    beyond = {"paper": ours, "published": [2.0 * high, 2.0 * high, 3.0 * high]}
    assert rates_verdict("sr", beyond, found["reach"]["H1"]) == "**not reproduced**"
    assert rates_verdict("sr", {"paper": [1.0, 1.1, 1.2], "published": [1.1, 1.3, 1.4]}, {}) == "reproduced"


def test_levels_wait_for_all_ten_instances() -> None:
    """Nine of them have no worst rate yet."""
    counts = {(name, draws): {"sr": (1, 10)} for name in INSTANCES[1:] for draws in (1, 2, 3, 4)}
    assert by_level(counts, LEVELS) == {}
