"""Two checkouts of the service side by side: every cell measured on both, one right after the other, in turns.

    python -m benchmarks.checkouts OTHER [--seconds S] [--repetitions R] [--cells "ask; tell"]

OTHER is a folder with another version and its .venv. The machine's speed wanders within minutes, so only the ratios of
neighbouring measurements count: this one over the other, median and range. Writes benchmarks/results/checkouts.json, with the
commits of both.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import subjects
from benchmarks.hot_path import NUMERIC, RESULTS, Bench, Cell, Tells, spread
from testing.server import Server


@dataclass(frozen=True)
class Subject:
    """A cell, and the service that it loads."""

    cell: Cell
    server: Server


def subjects_of(bench: Bench, chosen: set[str]) -> dict[str, Subject]:
    """The headline cells that depend on the service alone; only the services that the chosen ones need are started."""
    settings: dict[str, dict[str, Any]] = {
        "ask, 100 experiments": {"experiments": 100},
        "ask, 2 workers": {"workers": 2},
        "ask, SQLite": {"embedded": True},
        "ask, numeric expiry": {"expiry": NUMERIC},
        "ask, 10,000 arms": {"arms": 10_000},
        "ask, numeric expiry, 10,000 arms": {"arms": 10_000, "expiry": NUMERIC},
    }
    made: dict[str, Callable[[Server], Cell]] = {
        "ask": bench.asks,
        "tell": bench.tells,
        "loop": bench.loop,
        "ask, 1 connection": partial(bench.asks, connections=1),
        **dict.fromkeys(settings, bench.asks),
        "ask, 100 experiments": partial(bench.asks, experiments=100),
        "batch ask of 1,000": partial(bench.asks, connections=4, batch=1_000),
        "batch tell of 1,000": partial(bench.tells, connections=4, batch=1_000),
        "recommendation": partial(bench.looks, unchanged=False),
        "304": partial(bench.looks, unchanged=True),
    }
    unknown = chosen - made.keys()
    if unknown:
        raise SystemExit(f"No such cells: {', '.join(sorted(unknown))}. There are: {', '.join(made)}.")
    started = {name: bench.service(**settings.get(name, {})) for name in made if not chosen or name in chosen}
    return {name: Subject(made[name](server), server) for name, server in started.items()}


def processor_seconds(server: Server) -> float:
    """What the processes of a service have used so far."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        if int(fields[2]) == server.process.pid:  # its process group
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def measure(subject: Subject, seconds: float) -> dict[str, float]:
    """What the load generator saw, and the processor time of a request, which a busy machine changes less."""
    if isinstance(subject.cell, Tells):
        subject.cell.prepare(seconds)  # what is drawn to be told is no part of it
    before = processor_seconds(subject.server)
    seen = subject.cell(seconds)
    used = processor_seconds(subject.server) - before
    return {
        "per_second": seen["per_second"],
        "p50_ms": seen["p50_ms"],
        "refused": seen["refused"],
        "seconds": seen["seconds"],
        "processor_us": 1e6 * used / max(1.0, seen["requests"]),
    }


def commit_of(checkout: Path) -> str:
    """The commit of a checkout, and whether files that git knows were changed since; "unknown" outside of git."""
    command = ["git", "-C", str(checkout), "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty"]
    described = subprocess.run(command, capture_output=True, text=True, check=False)
    return described.stdout.strip() or "unknown"


def main() -> None:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--cells", default="", help="some of them, separated by semicolons")
    chosen = parser.parse_args()
    wanted = {name.strip() for name in chosen.cells.split(";") if name.strip()}
    measured: dict[str, list[dict[str, dict[str, float]]]] = {}
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        postgres = stack.enter_context(subjects.cluster())
        this = subjects_of(Bench(stack, Path(folder), postgres), wanted)
        other = subjects_of(Bench(stack, Path(folder), postgres, chosen.other.resolve()), wanted)
        for repetition in range(chosen.repetitions):
            for name in this:
                sides = {"this": this[name], "other": other[name]}
                order = sorted(sides, reverse=bool(repetition % 2))
                seen = {side: measure(sides[side], chosen.seconds) for side in order}
                measured.setdefault(name, []).append(seen)
                print(f"{repetition + 1}/{chosen.repetitions} {name:40s} {_ratio(seen, 'per_second'):6.2f}", flush=True)
    commits = {"this": commit_of(subjects.HERE.parent), "other": commit_of(chosen.other)}
    kept = {"commits": commits, "seconds": chosen.seconds, "repetitions": chosen.repetitions, "measured": measured}
    (RESULTS / "checkouts.json").write_text(json.dumps(kept, indent=1) + "\n")
    print(report(measured))


def _ratio(seen: dict[str, dict[str, float]], field: str) -> float:
    return seen["this"][field] / seen["other"][field]


def report(measured: dict[str, list[dict[str, dict[str, float]]]]) -> str:
    """The table of ratios, as Markdown."""
    lines = [
        "| cell | requests/s, this over the other: median [range] | processor time likewise | refused |",
        "|---|---|---|---|",
    ]
    for name, turns in measured.items():
        rates, costs = (spread([_ratio(seen, field) for seen in turns]) for field in ("per_second", "processor_us"))
        lines.append(f"| {name} | {rates} | {costs} | {int(sum(side['refused'] for seen in turns for side in seen.values()))} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
