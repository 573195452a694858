"""A release has a dated entry in the changelog, and what is not released yet is not taken for one."""

from __future__ import annotations

import pytest

from scripts.release_check import release_date

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
