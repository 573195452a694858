"""The order of the list by what is computed of its rows."""

from __future__ import annotations

from typing import Any

import pytest

from service.application.reads.overview import ListOrder
from service.web.dashboard.overview_order import in_order


def row(key: str, state: str = "leading", progress: float = 0.5, **others: Any) -> dict[str, Any]:  # noqa: ANN401 - any value
    """A row of the list with what orders look at."""
    known = {"lift": None, "share": None, "rate_per_day": None, "started_at": None, "reward": {"goal": "maximize"}}
    return {"key": key, "verdict": {"state": state, "progress": progress}} | known | others


def lift(difference: float, ratio: float | None) -> dict[str, Any]:
    """A lift over the control."""
    return {"difference": difference, "ratio": ratio}


ROWS = [
    row("none"),
    row("worse", lift=lift(-0.1, 0.5), share=0.1, rate_per_day=5.0, started_at="2026-01-02T"),
    row("better", "decided", 1.0, lift=lift(0.1, 1.2), share=0.7, rate_per_day=90.0, started_at="2026-03-02T"),
    row("quicker", "concluded", 1.0, lift=lift(-3.0, 0.5), reward={"goal": "minimize"}, share=0.4, started_at="2025-03-02T"),
    row("early", "collecting", 0.9),
]


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("-verdict", ["better", "none", "worse", "early", "quicker"]),
        ("verdict", ["quicker", "early", "none", "worse", "better"]),
        ("-lift", ["quicker", "better", "worse", "none", "early"]),
        ("lift", ["worse", "better", "quicker", "none", "early"]),
        ("-rate", ["better", "worse", "none", "quicker", "early"]),
        ("share", ["worse", "quicker", "better", "none", "early"]),
        ("-started", ["better", "worse", "quicker", "none", "early"]),
        ("-created_at", ["none", "worse", "better", "quicker", "early"]),
    ],
)
def test_what_is_known_is_ordered_and_the_rest_comes_last(order: ListOrder, expected: list[str]) -> None:
    """A verdict to act on comes first, a lift is a gain whichever way is better, and the unknown is last both ways."""
    assert [one["key"] for one in in_order(ROWS, order)] == expected
