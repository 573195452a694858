"""What becomes of the paper's statements."""

from __future__ import annotations

from studies.summaries import paper_claims
from tests.studies.made_up_results import made_up


def test_a_claim_holds_fails_or_stays_undecided() -> None:
    """It holds by clear differences only, and fails if any goes the other way."""
    sure = [made_up("8", "sr", 1000, 100), made_up("8", "simple_tracking", 1000, 90), made_up("8", "almost_tracking", 1000, 80)]
    for errors, verdict in ((900, "reproduced"), (20, "not reproduced"), (95, "not reproduced"), (105, "undecided")):
        bad = [made_up("8", f"{name}:theta0=0.26", 1000, errors) for name in ("cr_a", "cr_c")]
        assert [row["verdict"] for row in paper_claims.judge("short-horizon", [*sure, *bad])] == [verdict]


def test_comparable_means_within_a_quarter() -> None:
    """CR on MovieLens."""
    ours = [made_up("movielens", "simple_tracking", 10_000, 2000), made_up("movielens", "almost_tracking", 10_000, 2100)]
    near = [made_up("movielens", name, 10_000, 1900) for name in ("cr_a", "cr_c")]
    far = [made_up("movielens", name, 10_000, 1000) for name in ("cr_a", "cr_c")]
    assert paper_claims.judge("real-world", [*ours, *near])[-1]["verdict"] == "reproduced"
    assert paper_claims.judge("real-world", [*ours, *far])[-1]["verdict"] == "not reproduced"
