"""How long asks with a fallback take while connections are refused or hang, with a deadline of 50 ms (`make bench-fallback`).

    python -m benchmarks.client_fallback [--asks 1000]

Two ask at a time. Each ask is told raw, and less what the machine kept its own thread waiting for a processor: the second is the
client's part, the first is what a page sees on this machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import NamedTuple, TypeAlias

from bestarm import AsyncClient, Client
from testing.server import free_port

DEADLINE = 0.05
_RESULTS = Path(__file__).parent / "results/client_fallback.json"
Line: TypeAlias = dict[str, float]


class Taken(NamedTuple):
    """Seconds that one ask took."""

    raw: float
    corrected: float
    """Less what the machine kept its thread waiting for a processor."""


def _starved() -> float:
    """Seconds that the thread which asks was ready to run and had no processor: the machine's delay, not the client's."""
    return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9


class Stopwatch:
    """How long each ask took."""

    def __init__(self) -> None:
        self.taken: list[Taken] = []

    @contextmanager
    def running(self) -> Iterator[None]:
        """Measure one ask."""
        before, begun = _starved(), monotonic()
        yield
        raw = monotonic() - begun
        self.taken.append(Taken(raw, raw - (_starved() - before)))


def ask(client: Client, watch: Stopwatch, times: int) -> None:
    """So many asks, two at a time."""

    def asked(part: int) -> None:
        for _ in range(part):
            with watch.running():
                client.assign("any", fallback="a")

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(asked, [times // 2] * 2))


async def ask_asynchronously(client: AsyncClient, watch: Stopwatch, times: int) -> None:
    """The same, in an event loop."""

    async def asked(part: int) -> None:
        for _ in range(part):
            with watch.running():
                await client.assign("any", fallback="a")

    await asyncio.gather(asked(times // 2), asked(times // 2))


def _blocking(url: str, asks: int) -> list[Taken]:
    watch = Stopwatch()
    with Client(url, timeout=DEADLINE) as client:
        ask(client, watch, asks)
    return watch.taken


def _asynchronous(url: str, asks: int) -> list[Taken]:
    watch = Stopwatch()

    async def whole() -> None:
        async with AsyncClient(url, timeout=DEADLINE) as client:
            await ask_asynchronously(client, watch, asks)

    asyncio.run(whole())
    return watch.taken


def _line(seconds: list[float]) -> Line:
    """What the asks took, in milliseconds: the middle one, the slowest of a hundred, the slowest of all."""
    ordered = sorted(seconds)
    at = {"median": ordered[len(ordered) // 2], "p99": ordered[len(ordered) * 99 // 100], "max": ordered[-1]}
    return {name: round(1_000 * value, 1) for name, value in at.items()}


def measured(url: str, asks: int) -> dict[str, dict[str, Line]]:
    """Both clients against one address."""
    kinds: dict[str, Callable[[str, int], list[Taken]]] = {"blocking": _blocking, "asynchronous": _asynchronous}
    found = {kind: run(url, asks) for kind, run in kinds.items()}
    return {
        kind: {"raw": _line([one.raw for one in taken]), "corrected": _line([one.corrected for one in taken])}
        for kind, taken in found.items()
    }


def main() -> None:
    """Measure, print, and keep it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--asks", type=int, default=1_000)
    asks = parser.parse_args().asks
    found = {"refused": measured(f"http://127.0.0.1:{free_port()}", asks)}
    with socket.create_server(("127.0.0.1", 0), backlog=4 * asks) as silent:
        found["hanging"] = measured(f"http://127.0.0.1:{silent.getsockname()[1]}", asks)
    for service, kinds in found.items():
        for kind, told in kinds.items():
            for how, line in told.items():
                print(f"{service:8} {kind:13} {how:10}", *(f"{name} {value:5.1f} ms" for name, value in line.items()))
    load = [round(one, 2) for one in os.getloadavg()]
    _RESULTS.write_text(json.dumps({"asks": asks, "deadline_ms": 1_000 * DEADLINE, "load": load, **found}, indent=2) + "\n")


if __name__ == "__main__":
    main()
