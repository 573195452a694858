"""What each part of the campaign promises, and what of that its result breaks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from testing.torture.overload import LONGEST_WAIT_MS, is_client_bound, is_crowded
from testing.torture.soak import grown

_KEPT_GOODPUT, _RECOVERED_SECONDS, _REFUSED_MS = 0.8, 5.0, 50.0
_MOST_FILES = 60
# What operators are told to plan for a worker and the processes beside it (docs/operations.md): whoever asks, it is not more.
PLANNED_MEGABYTES = 500
_ANSWERS = {"201", "429", "503"}


def _faults(rows: list[dict[str, Any]]) -> list[str]:
    """Nothing lost, doubled or otherwise broken, and no answer that nobody provoked; a standby that lags may lose."""
    return [
        f"{row['fault']}: {row['anomalies']} {row['unexpected']}"
        for row in rows
        if not row["is_good"] and row["engine"] != "asynchronous"
    ]


def _fuzz(rows: list[dict[str, Any]]) -> list[str]:
    """The same answers and rows by every way, no defect, and nothing heard that a proxy did not see."""
    return [
        f"{row['way']}: {broken}" for row in rows for kind in ("differences", "failures", "smuggled") for broken in row[kind][:5]
    ]


def _document(rows: list[dict[str, Any]]) -> list[str]:
    """Every answer is one that is documented."""
    return [f"{row['engine']}: {broken}" for row in rows for broken in row["violations"][:5]]


def _greedy(rows: list[dict[str, Any]]) -> list[str]:
    """Nobody else is refused, nothing stays open, and memory has a bound."""
    crowded = [
        f"{row['what']}: {row['others_failed']} of others failed, {row['files_after'] - row['files_before']} files stay open"
        for row in rows
        if row["others_failed"] or row["files_after"] - row["files_before"] > _MOST_FILES
    ]
    swollen = [
        f"{row['what']}: {row['megabytes_at_most']} MB, {PLANNED_MEGABYTES} are planned"
        for row in rows
        if row["megabytes_at_most"] > PLANNED_MEGABYTES
    ]
    return crowded + swollen


def _overload(result: dict[str, Any]) -> list[str]:
    """Most of the best is still answered, refusals are quick and say until when, nobody waits long, and soon all is well."""
    steps = result["steps"]
    best = max(step["goodput_per_second"] for step in steps)
    found = []
    for step in steps:
        about = f"{step['times']:g} times"
        if step["times"] > 1 and step["goodput_per_second"] < _KEPT_GOODPUT * best and not is_client_bound(step):
            found.append(f"{about}: {step['goodput_per_second']} answered a second of {best}")
        if step["bare_refusals"] or step["refused_median_ms"] > _REFUSED_MS:
            found.append(f"{about}: refusals take {step['refused_median_ms']} ms, {step['bare_refusals']} do not say until when")
        if step["refused_p99_ms"] > _REFUSED_MS and not is_client_bound(step) and not is_crowded(step):
            found.append(f"{about}: one refusal in a hundred takes more than {step['refused_p99_ms']} ms")
        if step["waited_worst_ms"] > LONGEST_WAIT_MS or step["statuses"].keys() - _ANSWERS:
            found.append(f"{about}: somebody waited {step['waited_worst_ms']} ms; {step['statuses']}")
        if step["recovery_seconds"] > _RECOVERED_SECONDS:
            found.append(f"{about}: well again after {step['recovery_seconds']} s")
    return found


def _soak(result: dict[str, Any]) -> list[str]:
    """Every call is answered, and every promise of the checker kept."""
    failed = [] if not result["failed"] else [f"{result['failed']} calls failed"]
    return [*failed, *result.get("examples", [])]


def _long_soak(result: dict[str, Any]) -> list[str]:
    """And in the end the service is what it was half way."""
    return [*_soak(result), *grown(result)]


_PROMISES: dict[str, Callable[[Any], list[str]]] = {
    **dict.fromkeys(("sqlite", "services", "postgresql", "synchronous", "asynchronous"), _faults),
    "fuzz": _fuzz,
    "document": _document,
    "greedy": _greedy,
    "overload": _overload,
    "soak": _soak,
    "long soak": _long_soak,
}


def broken_in(part: str, result: Any) -> list[str]:  # noqa: ANN401 - JSON
    """What of its promises a part has broken, in words."""
    return [f"{part}: {what}" for what in _PROMISES[part](result)]
