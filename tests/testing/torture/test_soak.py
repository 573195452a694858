"""What a long while leaves behind is told from what wanders."""

from __future__ import annotations

from typing import Any

import pytest

from testing.torture.soak import DOCUMENTED_BYTES, grown
from tests.docs.texts import ROOT

_FLAT: dict[str, Any] = {
    "seconds": 1_800, "calls": 200_000, "megabytes_an_hour": 0.5, "megabytes_off_the_line": 0.2,
    "files_in_the_middle": 52, "files_at_last": 52, "ask_median_ms_second_fifth": 20.0, "ask_median_ms_last_fifth": 20.0,
    "bytes_a_draw": DOCUMENTED_BYTES,
}  # fmt: skip


@pytest.mark.parametrize(
    "other",
    [
        {},
        {"megabytes_an_hour": 20.0, "megabytes_off_the_line": 3.0},
        {"megabytes_an_hour": -40.0},
        {"megabytes_an_hour": 12.0},
        {"files_at_last": 75},
        {"ask_median_ms_last_fifth": 35.0},
        {"bytes_a_draw": 1_200},
    ],
)
def test_what_wanders_has_not_grown(other: dict[str, Any]) -> None:
    """Memory whose samples scatter more than it rises, streams that just change places, a machine that has other work."""
    assert grown(_FLAT | other) == []


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"megabytes_an_hour": 40.0}, "10.0 MB more in the second half, 100 bytes a call"),
        ({"files_at_last": 5_000}, "4948 files more are open than half way"),
        ({"ask_median_ms_last_fifth": 41.0}, "asks take 41.0 ms in the end, 20.0 ms early"),
        ({"bytes_a_draw": 1_800}, f"a draw takes 1800 bytes, {DOCUMENTED_BYTES} are documented"),
    ],
)
def test_what_has_grown_is_said(other: dict[str, Any], said: str) -> None:
    """A hundred bytes forgotten with each call, a file with each stream, asks and rows that get more expensive."""
    assert grown(_FLAT | other) == [said]


def test_what_a_draw_may_take_is_what_is_documented() -> None:
    """The table that operators plan their disks by."""
    table = (ROOT / "docs" / "retention.md").read_text()
    row = next(line for line in table.splitlines() if line.startswith("| a unit, and a UUID as idempotency key"))
    assert int(row.split("|")[3].replace(",", "")) == DOCUMENTED_BYTES
