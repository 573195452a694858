"""The tables of docs/reliability.md, from what the campaign found."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[1] / "docs" / "reliability.md"
_HEADS = {
    "sqlite": "SQLite",
    "services": "PostgreSQL",
    "postgresql": "PostgreSQL",
    "synchronous": "a synchronous pair",
    "asynchronous": "an asynchronous pair",
}
_KILLS = "kill -9"
_OURS = ("worker", "service", "supervisor")
# Results of before say less, and the page says so until the command was run again.
_SHORTER = "These results are from before faults lasted that long: processes were stopped for 4 or 12 s, rows locked for 24 s."
_NO_SEARCH = "This result is from before the capacity was searched for: it is not what is called 1 times here."
_MEGABYTES = ("megabytes_before", "megabytes_after", "megabytes_at_most")


def _table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    lines = [list(head), ["---"] * len(list(head)), *rows]
    return "\n".join(
        "| " + " | ".join(f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in line) + " |" for line in lines
    )


def _rows(found: dict[str, Any], parts: Iterable[str]) -> list[tuple[str, dict[str, Any]]]:
    return [(part, row) for part in parts if part in found for row in found[part]["result"]]


def _acknowledged(found: dict[str, Any], parts: Iterable[str]) -> tuple[str, str]:
    """What is counted, and its name: results of before counted looks and repeats as well."""
    if all("writes" in row for _, row in _rows(found, parts)):
        return "writes", "writes acknowledged"
    return "acknowledged", "acknowledged"


def _of_faults(found: dict[str, Any], *parts: str) -> str:
    head = (
        "fault",
        "on",
        "injections",
        "calls in flight",
        _acknowledged(found, parts)[1],
        "lost",
        "doubled",
        "other",
        "recovery: median",
        "worst",
    )
    is_new = all("writes" in row for _, row in _rows(found, parts))
    return (f"{_SHORTER}\n\n" if not is_new and "sqlite" in parts else "") + _table(
        head,
        (
            (
                row["fault"],
                _HEADS[part],
                row["injections"],
                row["in_flight"],
                row[_acknowledged(found, parts)[0]],
                row["lost"],
                row["doubled"],
                row["other_anomalies"],
                f"{row['recovery_median_seconds']:.2f} s",
                f"{row['recovery_worst_seconds']:.2f} s",
            )
            for part, row in _rows(found, parts)
        ),
    )


def _totals(found: dict[str, Any]) -> str:
    parts = ("sqlite", "services", "postgresql", "synchronous")
    rows = [row for _, row in _rows(found, parts)]
    counted_as, name = _acknowledged(found, parts)

    def injected(*names: str) -> int:
        return sum(row["injections"] for row in rows if row["fault"].startswith(names))

    hung_up, effect = (sum(row[name] for row in rows) for name in ("hung_up", "hung_up_took_effect"))
    counted = (
        (
            "`kill -9`, of a worker, a service, a supervisor, PostgreSQL, a session's process, a primary",
            injected(_KILLS, "failover"),
        ),
        ("of these, of workers, services and supervisors", injected(*(f"{_KILLS} of a {ours}" for ours in _OURS))),
        ("restarts of PostgreSQL, in order, at once or killed", injected("restart", f"{_KILLS} of PostgreSQL")),
        ("failovers with a synchronous standby", injected("failover")),
        ("connections cut, delayed or dropped", injected("connection", "all connections")),
        ("all faults", sum(row["injections"] for row in rows)),
        ("calls", sum(row["calls"] for row in rows)),
        (name, sum(row[counted_as] for row in rows)),
        ("acknowledged and lost", sum(row["lost"] for row in rows)),
        ("doubled", sum(row["doubled"] for row in rows)),
        ("other promises broken", sum(row["other_anomalies"] for row in rows)),
        ("answers that were neither success, nor refusal, nor 503", sum(len(row["unexpected"]) for row in rows)),
    )
    share = f"{effect:,} of {hung_up:,} ({effect / max(1, hung_up):.0%})"
    return _table(("what", "how many"), [*counted, ("asks whose client hung up and that took effect all the same", share)])


def _greedy(found: dict[str, Any]) -> str:
    most = ", at most" if all("megabytes_at_most" in row for row in found["greedy"]["result"]) else ""
    memory = f"memory before, after{most}"
    head = ("who", "came to", "asks of others meanwhile", "failed", "slowest", memory, "open files before, after")
    return _table(
        head,
        (
            (
                row["what"],
                row["came_to"],
                row["others"],
                row["others_failed"],
                f"{row['others_worst_ms']:,} ms",
                ", ".join(str(row[name]) for name in _MEGABYTES if name in row) + " MB",
                f"{row['files_before']}, {row['files_after']}",
            )
            for row in found["greedy"]["result"]
        ),
    )


def _overload(found: dict[str, Any]) -> str:
    steps = found["overload"]["result"]["steps"]
    is_new, has_waits = (all(name in step for step in steps) for name in ("client_s_core", "waited_worst_ms"))
    head = (
        "offered",
        "asks a second",
        "of those sent",
        "answered a second",
        "of the best",
        "slowest of 100",
        *(("since it was sent", "client's core") if is_new else ()),
        "refused",
        "refusal: median",
        "99%",
        *(("longest wait", "others' cores") if has_waits else ()),
        "well again",
    )
    best = max(step["goodput_per_second"] for step in steps)
    return ("" if is_new else f"{_NO_SEARCH}\n\n") + _table(
        head,
        (
            (
                f"{step['times']:g} times",
                step["offered_per_second"],
                step["sent_per_second"],
                step["goodput_per_second"],
                f"{step['goodput_per_second'] / best:.0%}",
                f"{step['answered_p99_ms']:g} ms",
                *([f"{step['answered_p99_since_sent_ms']:g} ms", f"{step['client_s_core']:.0%}"] if is_new else []),
                step["refused"],
                f"{step['refused_median_ms']:g} ms",
                f"{step['refused_p99_ms']:g} ms",
                *([f"{step['waited_worst_ms']:g} ms", f"{step['others_cores']:g}"] if has_waits else []),
                f"{step['recovery_seconds']:g} s",
            )
            for step in steps
        ),
    )


def _soak(found: dict[str, Any]) -> str:
    runs = [found[part]["result"] for part in ("soak", "long soak") if part in found]
    is_new = all("bytes_a_draw" in run for run in runs)
    head = (
        "minutes",
        "calls",
        "failed",
        "memory at first, half way, at last",
        "slope of the second half",
        "open files half way, at last",
        "median ask early, late",
        *(("promises broken", "bytes a draw") if is_new else ()),
    )
    return _table(
        head,
        (
            (
                round(run["seconds"] / 60),
                run["calls"],
                run["failed"],
                f"{run['megabytes_at_first']}, {run['megabytes_in_the_middle']}, {run['megabytes_at_last']} MB",
                f"{run['megabytes_an_hour']} MB an hour (single samples are {run['megabytes_off_the_line']} MB off it)",
                f"{run['files_in_the_middle']}, {run['files_at_last']}",
                f"{run['ask_median_ms_second_fifth']}, {run['ask_median_ms_last_fifth']} ms",
                *([run["anomalies"], run["bytes_a_draw"]] if is_new else []),
            )
            for run in runs
        ),
    )


def _by_status(counts: dict[str, int]) -> str:
    return ", ".join(f"{count:,} of {status}" for status, count in sorted(counts.items()))


def _fuzz(found: dict[str, Any]) -> str:
    rows = found["fuzz"]["result"]
    head = ("way", "connections", "answers", "differences", "defects", "hidden requests heard", "smuggled", "cut", "by status")
    return _table(
        head,
        (
            (
                row["way"],
                row["cases"],
                row["answers"],
                len(row["differences"]),
                len(row["failures"]),
                row["heard"],
                len(row["smuggled"]),
                row["cut"],
                _by_status(row["statuses"]),
            )
            for row in rows
        ),
    )


def _document(found: dict[str, Any]) -> str:
    rows = found["document"]["result"]
    head = ("on", "requests", "of these in conversations", "not as documented", "by status")
    return _table(
        head,
        (
            (
                _HEADS[row["engine"]],
                row["cases"],
                row["in_conversations"],
                len(row["violations"]),
                _by_status(row["statuses"]),
            )
            for row in rows
        ),
    )


def _cases(found: dict[str, Any]) -> str:
    count = sum(row["cases"] for part in ("fuzz", "document") for row in found[part]["result"])
    return f"{count:,} cases in all."


def _circumstances(found: dict[str, Any]) -> str:
    head = ("part", "took", "load of the machine at its end (1, 5, 15 minutes)", "what else ran")
    return _table(
        head,
        (
            (part, f"{kept['took_seconds']:,} s", ", ".join(map(str, kept["load"])), kept["beside"])
            for part, kept in found.items()
        ),
    )


_TABLES: dict[str, tuple[tuple[str, ...], Callable[[dict[str, Any]], str]]] = {
    "totals": (("sqlite", "postgresql", "synchronous"), _totals),
    "faults": (("sqlite", "postgresql"), lambda found: _of_faults(found, "sqlite", "services", "postgresql")),
    "failover": (("synchronous", "asynchronous"), lambda found: _of_faults(found, "synchronous", "asynchronous")),
    "greedy": (("greedy",), _greedy),
    "overload": (("overload",), _overload),
    "soak": (("soak",), _soak),
    "cases": (("fuzz", "document"), _cases),
    "fuzz": (("fuzz",), _fuzz),
    "document": (("document",), _document),
    "circumstances": ((), _circumstances),
}


def page_of(page: str, found: dict[str, Any]) -> str:
    """The page with the tables of those parts that have been played between their marks."""
    for name, (parts, table) in _TABLES.items():
        if all(part in found for part in parts) or (name == "soak" and "long soak" in found):
            head, rest = page.split(f"<!-- {name} -->\n", 1)
            page = f"{head}<!-- {name} -->\n{table(found)}\n<!-- end -->{rest.split('<!-- end -->', 1)[1]}"
    return page


def write_page(found: dict[str, Any]) -> None:
    """Put the tables on the page."""
    PAGE.write_text(page_of(PAGE.read_text(), found))
