"""A long while of mixed load: memory, open files and answers at its end are like those at its beginning."""

from __future__ import annotations

import statistics
import threading
import time
from pathlib import Path
from typing import Any

from testing.json_client import JsonClient
from testing.memory import processes_of
from testing.rows import Rows
from testing.server import Server
from testing.torture.checker import check
from testing.torture.crowd import Crowd, create_experiments
from testing.torture.stored import read_stored
from testing.torture.workloads import ARMS, EXPERIMENTS

_SAMPLES = 60
_STREAMS = 20
_SILENT = "silent"
_PAGE_BYTES = 4_096
# Memory is flat if the second half of the time added no more than single samples are off their line, there and back, or no more
# than this for each call: the smallest object that could be forgotten with each takes as much, and its place in a table more.
_OFF_THE_LINE, _BYTES_A_CALL = 2, 32
# At a sample each stream may just have left and come again, and clients that hang up do the same: for a moment both are open.
_FILES_MORE = 2 * _STREAMS
# A shared machine may be half as fast for minutes; what slows down with its history does not stop there.
_TIMES_SLOWER = 2.0
# An ask with a unit and a key, and its reward, on PostgreSQL (docs/retention.md). A part of these draws is corrected, voided or
# expires besides, some answers are stored for two days, and there are observations: half as much again is for them.
DOCUMENTED_BYTES, _FOR_THE_REST = 899, 1.5


def measure(database_url: str, seconds: float) -> dict[str, Any]:
    """Asks, tells, looks, batches, expiries and streams of one service."""
    samples: list[tuple[float, float, int]] = []
    bytes_before = _stored_bytes(database_url)
    with Server(database_url, workers=1) as server:
        create_experiments(server.url)
        with JsonClient(server.url) as client:
            client.create(_SILENT, arms=ARMS, expiry={"after_seconds": 2, "reward": 0})
        ending = threading.Event()
        beside = [threading.Thread(target=_expire, args=(server, ending))]
        beside += [threading.Thread(target=_stream, args=(server, ending)) for _ in range(_STREAMS)]
        with Crowd([server.url], threads=2) as crowd:
            for one in beside:
                one.start()
            crowd.wait_until_busy()
            began = time.monotonic()
            while time.monotonic() - began < seconds:
                samples.append((time.monotonic() - began, *held(server.process.pid)))
                time.sleep(seconds / _SAMPLES)
            ending.set()
            calls = crowd.call_back()
        for one in beside:
            one.join()
        with JsonClient(server.url) as client:
            expired = int(client.send("GET", f"/v1/experiments/{_SILENT}/recommendation").body["draws"])
    stored = [read_stored(database_url, key) for key in EXPERIMENTS]
    anomalies = [f"{one.key}: {found.promise}: {found.detail}" for one in stored for found in check(calls, one)]
    draws = sum(one.draws for one in stored) + expired
    asks = [(call.began, call.ended - call.began) for call in calls if call.kind == "ask" and call.status == 201]
    first, last = min(at for at, _ in asks), max(at for at, _ in asks)
    fifth = (last - first) / 5
    return {
        "seconds": round(seconds),
        "calls": len(calls),
        "failed": sum((call.status is None and call.workload != "indefinite") or (call.status or 0) >= 500 for call in calls),
        "anomalies": len(anomalies),
        "examples": anomalies[:5],
        "draws": draws,
        "bytes_a_draw": round((_stored_bytes(database_url) - bytes_before) / max(1, draws)),
        **_summary(samples),
        "ask_median_ms_second_fifth": _median_ms([took for at, took in asks if first + fifth <= at < first + 2 * fifth]),
        "ask_median_ms_last_fifth": _median_ms([took for at, took in asks if at >= last - fifth]),
    }


def grown(result: dict[str, Any]) -> list[str]:
    """What was not the same at the end of a long while; two minutes are too short to tell."""
    hours = result["seconds"] / 3_600
    megabytes, calls = result["megabytes_an_hour"] * hours / 2, result["calls"] / 2
    files = result["files_at_last"] - result["files_in_the_middle"]
    early, late = result["ask_median_ms_second_fifth"], result["ask_median_ms_last_fifth"]
    found = []
    if megabytes > max(_OFF_THE_LINE * result["megabytes_off_the_line"], _BYTES_A_CALL * calls / 1e6):
        found.append(f"{megabytes:.1f} MB more in the second half, {1e6 * megabytes / max(1, calls):.0f} bytes a call")
    if files > _FILES_MORE:
        found.append(f"{files} files more are open than half way")
    if late > _TIMES_SLOWER * early:
        found.append(f"asks take {late} ms in the end, {early} ms early")
    if result["bytes_a_draw"] > _FOR_THE_REST * DOCUMENTED_BYTES:
        found.append(f"a draw takes {result['bytes_a_draw']} bytes, {DOCUMENTED_BYTES} are documented")
    return found


def _stored_bytes(database_url: str) -> int:
    """What the database takes on the disk."""
    with Rows(database_url) as rows:
        return int(rows.query("SELECT pg_database_size(current_database())")[0][0])


def _summary(samples: list[tuple[float, float, int]]) -> dict[str, Any]:
    """The second half of the time alone, when caches are full: its slope, and how far single samples are from it."""
    late = samples[len(samples) // 2 :]
    times, memory = [at for at, _, _ in late], [size for _, size, _ in late]
    slope, start = statistics.linear_regression(times, memory)
    off = statistics.pstdev([size - start - slope * at for at, size in zip(times, memory, strict=True)])
    return {
        "megabytes_at_first": round(samples[0][1], 1),
        "megabytes_in_the_middle": round(late[0][1], 1),
        "megabytes_at_last": round(samples[-1][1], 1),
        "megabytes_an_hour": round(slope * 3_600, 1),
        "megabytes_off_the_line": round(off, 2),
        "files_in_the_middle": late[0][2],
        "files_at_last": samples[-1][2],
    }


def _median_ms(times: list[float]) -> float:
    return round(statistics.median(times) * 1_000, 2)


def held(pid: int) -> tuple[float, int]:
    """Memory in megabytes and open files, of all its processes."""
    pages = files = 0
    for one in processes_of(pid):
        try:
            pages += int(Path(f"/proc/{one}/statm").read_text().split()[1])
            files += sum(1 for _ in Path(f"/proc/{one}/fd").iterdir())
        except OSError:
            continue  # it has just ended
    return pages * _PAGE_BYTES / 1e6, files


def _expire(server: Server, ending: threading.Event) -> None:
    """Asks that nobody answers."""
    with JsonClient(server.url) as client:
        while not ending.wait(0.05):
            client.ask(_SILENT)


def _stream(server: Server, ending: threading.Event) -> None:
    """Look on for a moment, leave, come again."""
    with server.client() as client:
        while not ending.is_set():
            with client.stream("GET", "/v1/experiments/ledger/stream") as answer:
                lines = answer.iter_lines()
                until = time.monotonic() + 3
                while time.monotonic() < until and not ending.is_set():
                    next(lines, None)
