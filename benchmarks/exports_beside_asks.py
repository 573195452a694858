"""Exports beside asks: what asks keep of their rate, how much memory the service takes more, and how long a whole file takes.

    python -m benchmarks.exports_beside_asks [--rows N] [--seconds S] [--repetitions R] [--exports E]

Asks by 64 connections fill a worker, which shares two cores with PostgreSQL and the load generator. They are measured alone and
beside exports without a pause, in turn, format by format. Part of `benchmarks.export_import`; by itself it writes
exports_beside_asks.json among the results.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import threading
import time
from typing import Any, Self

import httpx

from benchmarks import subjects
from benchmarks.hot_path import HOT, RESULTS, spread
from benchmarks.load import wrk
from benchmarks.tree_memory import TreeMemory, mib
from service.domain.file_formats import FILE_FORMATS
from testing.server import Server

BIG = "big"
E = "/v1/experiments"
BATCH = 10_000
ARMS = 5
_REWARDED = 0.9
_MEAN = 0.2
_CONNECTIONS = 64


def fill(client: httpx.Client, rows: int) -> None:
    """An experiment with so many assignments, as traffic makes them."""
    client.post(E, json={"key": BIG, "arms": [{"key": f"a{arm}"} for arm in range(ARMS)]}).raise_for_status()
    for start in range(0, rows, BATCH):
        units = [f"user-{number}" for number in range(start, start + BATCH)]
        drawn = client.post(f"{E}/{BIG}/assignments/batch", json={"units": units}).raise_for_status().json()["assignments"]
        told = drawn[: int(BATCH * _REWARDED)]
        rewards = [
            {"assignment": one["id"], "reward": int((number * 7919) % 100 < 100 * _MEAN)} for number, one in enumerate(told)
        ]
        client.post(f"{E}/{BIG}/rewards", json={"rewards": rewards}).raise_for_status()


class Readers:
    """Take exports again and again, so many at a time, as long as they are open."""

    def __init__(self, server: Server, form: str, exports: int = 1) -> None:
        address = f"{server.url}{E}/{BIG}/export?format={form}"
        reading = f"while curl -sf -o /dev/null '{address}'; do :; done"
        self._processes = [
            subprocess.Popen(["nice", "-n", "19", "bash", "-c", reading], start_new_session=True)  # noqa: S607 - ours
            for _ in range(exports)
        ]

    def __enter__(self) -> None:
        time.sleep(1)  # their processes have begun

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            os.killpg(process.pid, 15)
            process.wait()


def beside_asks(server: Server, seconds: float, repetitions: int, exports: int = 1) -> dict[str, Any]:
    """Asks alone and beside exports of each format, in turn; and the memory of both."""
    found: dict[str, Any] = {form: {"alone": [], "beside": [], "growth": []} for form in FILE_FORMATS}
    for repetition in range(repetitions):
        for form in FILE_FORMATS:
            alone = _asks(server, seconds)
            with Readers(server, form, exports):
                beside = _asks(server, seconds)
            time.sleep(0.5)
            growth = {name: max(0, beside["memory"][name] - alone["memory"][name]) for name in alone["memory"]}
            for name, value in (("alone", alone), ("beside", beside), ("growth", growth)):
                found[form][name].append(value)
            ratio = beside["per_second"] / alone["per_second"]
            grown = ", ".join(f"{name} {mib(value)}" for name, value in growth.items())
            print(
                f"{repetition + 1}/{repetitions} {form:8s} asks {alone['per_second']:8,.0f}/s alone, {ratio:.2f} beside an export"
            )
            print(f"    p99 {alone['p99_ms']:.0f} and {beside['p99_ms']:.0f} ms; memory grew by {grown}", flush=True)
    return found


def _asks(server: Server, seconds: float) -> dict[str, Any]:
    with TreeMemory(server.process.pid) as memory:
        seen = wrk(server.url, "ask.lua", "1", HOT, f"x{time.time_ns():x}", connections=_CONNECTIONS, seconds=seconds)
    if seen.refused:
        raise RuntimeError(f"{seen.refused} asks were refused.")
    return {"per_second": seen.per_second, "p50_ms": seen.p50_ms, "p99_ms": seen.p99_ms, "memory": memory.most}


class Asking:
    """Asks that fill the worker, without a pause, as long as it is open."""

    def __init__(self, server: Server) -> None:
        self._server, self._closed = server, threading.Event()
        self._thread = threading.Thread(target=self._ask)

    def _ask(self) -> None:
        while not self._closed.is_set():
            wrk(self._server.url, "ask.lua", "1", HOT, f"x{time.time_ns():x}", connections=_CONNECTIONS, seconds=2)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        self._thread.join()


def whole_beside_asks(server: Server) -> dict[str, float]:
    """Seconds until a whole file is there beside asks that fill the worker, by format."""
    found: dict[str, float] = {}
    for form in FILE_FORMATS:
        with Asking(server):
            began = time.perf_counter()
            address = f"{server.url}{E}/{BIG}/export?format={form}"
            subprocess.run(["nice", "-n", "19", "curl", "-sf", "-o", os.devnull, address], check=True)  # noqa: S607 - ours
            found[form] = time.perf_counter() - began
        print(f"{form:8s} {found[form]:.0f} s for a whole file beside asks", flush=True)
    return found


def report_lines(found_by_form: dict[str, Any]) -> list[str]:
    """What was wanted of each format, and what was found."""
    lines = []
    for form, found in found_by_form.items():
        ratios = [
            beside["per_second"] / alone["per_second"] for alone, beside in zip(found["alone"], found["beside"], strict=True)
        ]
        lines.append(f"| asks beside an export as {form}, of their rate alone | {spread(ratios)} | at least 0.8 |")
        for name in ("anonymous", "resident"):
            grown = [growth[name] / 2**20 for growth in found["growth"]]
            lines.append(f"| {name} memory of the service beside it, MiB more | {spread(grown)} | below 50 |")
    return lines


def main() -> None:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--exports", type=int, default=1, help="at a time; a worker makes four at most")
    chosen = parser.parse_args()
    machine = {"cores": os.cpu_count(), "load_before": os.getloadavg()[0]}
    with subjects.cluster() as postgres, subjects.service(postgres) as server:
        with httpx.Client(base_url=server.url, timeout=600) as client:
            fill(client, chosen.rows)
        found = beside_asks(server, chosen.seconds, chosen.repetitions, chosen.exports)
        measured = {"beside_asks": found, "whole_beside_asks": whole_beside_asks(server)}
    kept = {**vars(chosen), "machine": machine | {"load_after": os.getloadavg()[0]}, "measured": measured}
    (RESULTS / "exports_beside_asks.json").write_text(json.dumps(kept, indent=1) + "\n")
    print("| what | median [range] | wanted |", "|---|---|---|", *report_lines(found), sep="\n")


if __name__ == "__main__":
    main()
