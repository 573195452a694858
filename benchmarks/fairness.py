"""Sixty-four clients of our own, each waiting for its answer before it asks again: who gets how much, and how long it takes."""

from __future__ import annotations

import asyncio
import statistics
import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Fairness:
    """What the clients got."""

    per_second: float
    p50_ms: float
    p99_ms: float
    slowest_share: float
    """Answers of the slowest client over the mean of all."""


async def _client(port: int, path: str, name: str, until: float, times: list[float]) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    answered = 0
    while time.perf_counter() < until:
        began = time.perf_counter()
        head = (
            f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nIdempotency-Key: {name}-{answered}\r\n"
        )
        writer.write(f"{head}Idempotency-Key: {name}-{answered}\r\nContent-Length: 2\r\n\r\n{{}}".encode())
        answer = await reader.readuntil(b"\r\n\r\n")
        if not answer.startswith(b"HTTP/1.1 201"):
            raise RuntimeError(answer.decode())
        length = int(answer.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        await reader.readexactly(length)
        times.append(time.perf_counter() - began)
        answered += 1
    writer.close()
    return answered


async def _measure(port: int, path: str, clients: int, seconds: float, seed: str) -> Fairness:
    times: list[float] = []
    until = time.perf_counter() + seconds
    counts = await asyncio.gather(*(_client(port, path, f"{seed}-{number}", until, times) for number in range(clients)))
    ordered = sorted(times)
    return Fairness(
        per_second=len(times) / seconds,
        p50_ms=1e3 * statistics.median(ordered),
        p99_ms=1e3 * ordered[int(0.99 * len(ordered))],
        slowest_share=min(counts) / statistics.mean(counts),
    )


def fairness(port: int, path: str, *, clients: int, seconds: float, seed: str) -> Fairness:
    """Run the clients for so long."""
    return asyncio.run(_measure(port, path, clients, seconds, seed))
