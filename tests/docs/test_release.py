"""A release has a dated entry in the changelog, and leaves room for the one before; what is not released is not taken for one."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from scripts.release_check import release_date
from service.storage.migrate import head
from testing.other_releases import release_before
from tests.docs.texts import text_of

_DATED = "## [0.2.0] - 2026-11-18\n\n### Added\n\n- A thing.\n"


@pytest.mark.parametrize(
    ("changelog", "date"),
    [
        (_DATED, "2026-11-18"),
        (f"## [Unreleased]\n\n{_DATED}", "2026-11-18"),
        (f"## [Unreleased]\n\n### Fixed\n\n- Another thing.\n\n{_DATED}", None),
        ("## [Unreleased]\n\n- A thing.\n", None),
        ("## [0.2.0] - unreleased\n\n- A thing.\n", None),
        ("## [0.2.0]\n\n- A thing.\n", None),
        ("## [0.1.0] - 2026-11-01\n\n- A thing.\n", None),
    ],
)
def test_only_a_dated_entry_with_nothing_left_beside_it_is_a_release(changelog: str, date: str | None) -> None:
    """The heading names the version and a day; whatever is under "Unreleased" would miss the release."""
    assert release_date(changelog, "0.2.0") == date


def test_the_page_of_releases_says_how_far_this_one_is() -> None:
    """By its newest migration."""
    assert f"| not released yet | {head()} | at {head()}, and at later migrations" in text_of("docs/releases.md")


def test_the_release_before_may_use_the_database_that_this_one_makes(sqlite_template: Path) -> None:
    """The promise of decision 14. What takes something away from it has to wait for one release more."""
    with closing(sqlite3.connect(sqlite_template)) as rows:
        ((oldest,),) = rows.execute("SELECT compatible_with FROM schema_compatibility").fetchall()
    assert oldest <= release_before().migration
