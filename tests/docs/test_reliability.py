"""What docs/reliability.md says was measured, and nothing that was promised broke."""

from __future__ import annotations

import json

from benchmarks.reliability_page import PAGE, page_of
from tests.docs.texts import ROOT

_FOUND = json.loads((ROOT / "benchmarks" / "results" / "torture.json").read_text())


def test_the_page_is_what_the_result_says() -> None:
    """The tables are made by the command, from the result that is kept beside them."""
    page = PAGE.read_text()
    assert page_of(page, _FOUND) == page


def test_nothing_acknowledged_was_lost() -> None:
    """Nor doubled, nor anything else broken, wherever a standby that may be behind did not take over."""
    rows = [row for part in ("sqlite", "postgresql", "synchronous") for row in _FOUND[part]["result"]]
    assert sum(row["injections"] for row in rows) > 0
    assert [(row["fault"], row["anomalies"], row["unexpected"]) for row in rows if not row["is_good"]] == []
