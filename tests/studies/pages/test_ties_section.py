"""The page on ties says what its counts show: the positions agree, and no case is worse than by the paper's ties."""

from __future__ import annotations

import json

from studies.binary_ties import CASES, PLACES, POLICIES, RUNS, SEED, counts
from studies.pages.ties_section import FINDINGS, PAPER, UNIFORM, over_paper, positions, ties_table
from tests.docs.texts import text_of


def test_every_case_was_played_as_often_with_every_policy_in_both_positions() -> None:
    """10,000 times, with one seed."""
    found = counts()
    assert set(found) == {(case, place) for case, _, _ in CASES for place in PLACES}
    for rows in found.values():
        assert [(row["policy"], int(row["runs"]), int(row["seed"])) for row in rows] == [(each, RUNS, SEED) for each in POLICIES]


def test_the_page_has_the_table_of_the_counts_and_the_file_their_findings() -> None:
    """Both are made again here."""
    found = counts()
    assert f"<!-- ties -->\n{ties_table(found)}<!-- /ties -->" in text_of("docs/reproduction-ties.md")
    kept = json.loads(FINDINGS.read_text())
    assert kept == json.loads(json.dumps({"positions": positions(found), "over_paper": over_paper(found)}))


def test_the_two_positions_agree_within_their_intervals() -> None:
    """In every row with tracking but the paper's ties: their intervals overlap, and no difference is significant."""
    found = positions(counts())
    assert len(found) == len(CASES) * (len(POLICIES) - 2)
    assert all(row["overlap"] and not row["differ"] for row in found)


def test_no_case_is_worse_than_by_the_papers_ties() -> None:
    """By the mean over both positions, whichever of the tracking policies; and significantly better everywhere."""
    found = [row for row in over_paper(counts()) if row["policy"] not in {PAPER, UNIFORM}]
    assert all(row["ratio"] < 1.0 and row["p"] < 0.05 / len(found) for row in found)
