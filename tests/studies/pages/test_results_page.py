"""docs/reproduction.md is what its result files say, in words that are true today."""

from __future__ import annotations

from pathlib import Path

from studies.pages.results_page import write_page

DOCS = Path(__file__).parents[3] / "docs"


def test_the_committed_page_is_made_of_the_committed_results(tmp_path: Path) -> None:
    """`make reproduction-page` would change nothing."""
    write_page(DOCS / "reproduction", tmp_path / "page.md")
    assert (tmp_path / "page.md").read_text() == (DOCS / "reproduction.md").read_text()


def test_the_page_names_the_command_of_today(tmp_path: Path) -> None:
    """Whatever the command was called when the results were made."""
    write_page(DOCS / "reproduction", tmp_path / "page.md")
    text = (tmp_path / "page.md").read_text()
    assert "`python -m studies budgets --runs 10000 --seed 20260`" in text
    assert "`python -m studies sharpness --runs 1000 --seed 20260`" in text
    assert "bestarm reproduce" not in text


def test_prose_fits_a_screen(tmp_path: Path) -> None:
    """Only rows of tables are as long as they are."""
    write_page(DOCS / "reproduction", tmp_path / "page.md")
    prose = [line for line in (tmp_path / "page.md").read_text().splitlines() if not line.startswith("|")]
    assert max(map(len, prose)) <= 160
