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
