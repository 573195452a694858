"""Load on loopback by wrk, and what it saw; pgbench for the floors in the database."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_LUA = Path(__file__).parent / "lua"
_UNITS = {"us": 1e-3, "ms": 1.0, "s": 1e3, "m": 6e4}


@dataclass(frozen=True)
class Seen:
    """One run of the load generator."""

    per_second: float
    p50_ms: float
    p99_ms: float
    requests: int
    refused: int
    """Answers other than 2xx and 3xx, and socket errors."""
    seconds: float
    """By the load generator's own clock, which may go on longer than it was told."""


class ListTooShort(SystemExit):
    """A cell that ran out of what it was to send measured its own list."""


def whole_seconds(seconds: float) -> int:
    """What the load generators can be told."""
    return max(1, round(seconds))


def wrk_listed(
    url: str, script: str, listed: Path, lines: Iterable[str], *, connections: int, seconds: float
) -> tuple[Seen, int]:
    """Load a URL with each line of a list once; returns how many lines may have been sent, too."""
    count = 0
    with listed.open("w") as file:
        for count, line in enumerate(lines, 1):  # noqa: B007 - how many there were
            file.write(f"{line}\n")
    seen = wrk(url, script, str(listed), connections=connections, seconds=seconds)
    sent = seen.requests + connections + 1  # on every connection one is under way, and one is made to look at
    if sent >= count:
        raise ListTooShort(f"{seen.requests:,} requests of a list of {count:,} in {seen.seconds:g} s: make the list longer.")
    return seen, sent


def wrk(url: str, script: str | None, *arguments: str, connections: int, seconds: float, headers: tuple[str, ...] = ()) -> Seen:
    """Load a URL; bounded in time and connections."""
    if shutil.which("wrk") is None:
        raise SystemExit("This needs wrk: run it through make, which installs it.")
    command = ["wrk", "-t1", f"-c{connections}", f"-d{whole_seconds(seconds)}s", "--latency", "--timeout", "30s"]
    for header in headers:
        command += ["-H", header]
    if script:
        command += ["-s", str(_LUA / script)]
    done = subprocess.run([*command, url, "--", *arguments], capture_output=True, text=True, check=True)
    return _read(done.stdout)


def _read(text: str) -> Seen:
    def milliseconds(before: str) -> float:
        found = re.search(rf"{before}\s+([\d.]+)(us|ms|s|m)", text)
        return float(found[1]) * _UNITS[found[2]] if found else float("nan")

    def number(pattern: str) -> float:
        found = re.search(pattern, text)
        return float(found[1]) if found else 0.0

    sockets = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", text)
    return Seen(
        per_second=number(r"Requests/sec:\s+([\d.]+)"),
        p50_ms=milliseconds("50%"),
        p99_ms=milliseconds("99%"),
        requests=int(number(r"(\d+) requests in")),
        refused=int(number(r"Non-2xx or 3xx responses: (\d+)")) + sum(map(int, sockets.groups() if sockets else ())),
        seconds=milliseconds("requests in") / 1e3,
    )


def pgbench(binaries: Path, socket: Path, database: str, script: Path, *, clients: int, seconds: float, experiments: int) -> Seen:
    """The transaction of a script, again and again, by so many clients."""
    whole = whole_seconds(seconds)
    command: list[str | Path] = [
        binaries / "pgbench", "-n", "-M", "prepared", "-f", script, "-D", f"experiments={experiments}",
        "-c", str(clients), "-j", "2", "-T", str(whole), "-h", socket, "-U", "bestarm", database,
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rate = re.search(r"tps = ([\d.]+)", done.stdout)
    latency = re.search(r"latency average = ([\d.]+) ms", done.stdout)
    per_second, mean = float(rate[1]) if rate else 0.0, float(latency[1]) if latency else float("nan")
    return Seen(per_second, mean, float("nan"), round(per_second * whole), 0, whole)
