"""What docs/reliability.md says was measured, and nothing that was promised broke."""

from __future__ import annotations

import json
from typing import Any

import pytest

from benchmarks.reliability_page import PAGE, page_of
from benchmarks.reliability_promises import PLANNED_MEGABYTES, broken_in
from tests.docs.texts import ROOT

_FOUND = json.loads((ROOT / "benchmarks" / "results" / "torture.json").read_text())


def test_the_page_is_what_the_result_says() -> None:
    """The tables are made by the command, from the result that is kept beside them."""
    page = PAGE.read_text()
    assert page_of(page, _FOUND) == page


def test_nothing_acknowledged_was_lost() -> None:
    """Nor doubled, nor anything else broken, wherever a standby that may be behind did not take over."""
    rows = [
        row for part in ("sqlite", "services", "postgresql", "synchronous") if part in _FOUND for row in _FOUND[part]["result"]
    ]
    assert sum(row["injections"] for row in rows) > 0
    assert [(row["fault"], row["anomalies"], row["unexpected"]) for row in rows if not row["is_good"]] == []


def test_fifty_thousand_cases_found_no_difference_and_no_defect() -> None:
    """By every way in, on both databases."""
    assert {row["way"] for row in _FOUND["fuzz"]["result"]} == {"direct", "nginx", "haproxy"}
    assert {row["engine"] for row in _FOUND["document"]["result"]} == {"sqlite", "postgresql"}
    assert sum(row["cases"] for part in ("fuzz", "document") for row in _FOUND[part]["result"]) >= 50_000
    assert [broken for part in ("fuzz", "document") for broken in broken_in(part, _FOUND[part]["result"])] == []


_ROW: dict[str, Any] = {"fault": "f", "engine": "sqlite", "is_good": True, "anomalies": [], "unexpected": []}
_BESIDE: dict[str, Any] = {"what": "w", "others_failed": 0, "files_before": 20, "files_after": 30, "megabytes_at_most": 380}
_STEP: dict[str, Any] = {
    "times": 5, "goodput_per_second": 900, "client_s_core": 0.5,
    "bare_refusals": 0, "refused_median_ms": 30, "refused_p99_ms": 40, "waited_worst_ms": 300, "others_cores": 0.0,
    "statuses": {"201": 900, "503": 9}, "recovery_seconds": 1,
}  # fmt: skip
_BEST = _STEP | {"times": 1, "goodput_per_second": 1_000}
_SLOW = _STEP | {"refused_p99_ms": 80}
_WAY: dict[str, Any] = {"way": "nginx", "differences": [], "failures": [], "smuggled": []}
_DOCUMENTED: dict[str, Any] = {"engine": "sqlite", "violations": []}
_SOAKED: dict[str, Any] = {
    "seconds": 1_800, "calls": 200_000, "failed": 0, "examples": [], "megabytes_an_hour": 6.0, "megabytes_off_the_line": 0.2,
    "files_in_the_middle": 52, "files_at_last": 60, "ask_median_ms_second_fifth": 20.0, "ask_median_ms_last_fifth": 25.0,
    "bytes_a_draw": 1_000,
}  # fmt: skip
_BROKEN: dict[str, tuple[str, Any, Any]] = {
    "an unexpected answer": ("postgresql", [_ROW], [_ROW | {"is_good": False, "unexpected": ["ask 404"]}]),
    "a difference": ("fuzz", [_WAY], [_WAY | {"differences": ["case 1"]}]),
    "a stack trace": ("fuzz", [_WAY], [_WAY | {"failures": ["case 1: 500"]}]),
    "a smuggled request": ("fuzz", [_WAY], [_WAY | {"smuggled": ["hidden-1"]}]),
    "what is not documented": ("document", [_DOCUMENTED], [_DOCUMENTED | {"violations": ["418"]}]),
    "others that fail": ("greedy", [_BESIDE], [_BESIDE | {"others_failed": 1}]),
    "files that stay open": ("greedy", [_BESIDE], [_BESIDE | {"files_after": 900}]),
    "memory without a bound": ("greedy", [_BESIDE], [_BESIDE | {"megabytes_at_most": 900}]),
    "little goodput": ("overload", {"steps": [_BEST, _STEP]}, {"steps": [_BEST, _STEP | {"goodput_per_second": 500}]}),
    "slow refusals": ("overload", {"steps": [_STEP]}, {"steps": [_STEP | {"refused_median_ms": 80}]}),
    "a few slow refusals": (
        "overload",
        {"steps": [_STEP, _SLOW | {"client_s_core": 0.95}, _SLOW | {"others_cores": 1.2}]},
        {"steps": [_STEP, _SLOW]},
    ),
    "who waits too long": ("overload", {"steps": [_STEP]}, {"steps": [_STEP | {"waited_worst_ms": 2_400}]}),
    "who gets no answer": ("overload", {"steps": [_STEP]}, {"steps": [_STEP | {"statuses": {"201": 900, "TimeoutError": 1}}]}),
    "bare refusals": ("overload", {"steps": [_STEP]}, {"steps": [_STEP | {"bare_refusals": 1}]}),
    "no recovery": ("overload", {"steps": [_STEP]}, {"steps": [_STEP | {"recovery_seconds": 9}]}),
    "calls that fail": ("soak", {"failed": 0, "examples": []}, {"failed": 2, "examples": []}),
    "anomalies of a soak": ("long soak", _SOAKED, _SOAKED | {"examples": ["a reward counts once"]}),
    "memory that grows": ("long soak", _SOAKED, _SOAKED | {"megabytes_an_hour": 60.0}),
    "files of a soak": ("long soak", _SOAKED, _SOAKED | {"files_at_last": 400}),
    "asks that become slow": ("long soak", _SOAKED, _SOAKED | {"ask_median_ms_last_fifth": 60.0}),
    "a database that grows": ("long soak", _SOAKED, _SOAKED | {"bytes_a_draw": 2_000}),
}


@pytest.mark.parametrize("what", _BROKEN)
def test_whatever_breaks_is_said(what: str) -> None:
    """By every part, so that the command fails for each of them; and nothing where all is well."""
    part, good, bad = _BROKEN[what]
    assert broken_in(part, good) == []
    assert len(broken_in(part, bad)) == 1


def test_no_client_has_a_worker_take_more_memory_than_is_planned_for_it() -> None:
    """The bound is what operators are told."""
    assert f"plan {PLANNED_MEGABYTES} MB a worker" in (ROOT / "docs" / "operations.md").read_text()
