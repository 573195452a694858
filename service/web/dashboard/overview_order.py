"""The order of rows of the list by what is computed of them. What is not known comes last, whichever way the rest is ordered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from service.application.reads.overview import ListOrder

Row: TypeAlias = dict[str, Any]
# What may stop now, then what comes closest to it; what was stopped asks nothing of anyone.
_STATES = {"concluded": -1.0, "collecting": 0.0, "leading": 1.0, "decided": 2.0}


def _verdict(row: Row) -> float:
    verdict = row["verdict"]
    return _STATES[verdict["state"]] + (min(verdict["progress"], 0.999) if verdict["state"] in ("collecting", "leading") else 0.0)


def _lift(row: Row) -> float | None:
    """How much better than the control: as a part of it, which compares over experiments, else as it is."""
    if row["lift"] is None:
        return None
    part = row["lift"]["difference"] if row["lift"]["ratio"] is None else row["lift"]["ratio"] - 1.0
    return float(part if row["reward"]["goal"] == "maximize" else -part)


_VALUES: dict[str, Callable[[Row], Any]] = {
    "verdict": _verdict,
    "lift": _lift,
    "share": lambda row: row["share"],
    "rate": lambda row: row["rate_per_day"],
    "started": lambda row: row["started_at"],
}
OF_TRAFFIC = frozenset({"rate", "started"})
"""What is computed from the course, which takes longer."""


def in_order(rows: Sequence[Row], order: ListOrder) -> list[Row]:
    """The rows by a computed order; in any other one they are there already."""
    value = _VALUES.get(order.removeprefix("-"))
    if value is None:
        return list(rows)
    known = [row for row in rows if value(row) is not None]
    return sorted(known, key=value, reverse=order.startswith("-")) + [row for row in rows if value(row) is None]
