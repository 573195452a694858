"""More than a service can take: what it still does, how soon it refuses the rest, and how soon all is well again."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from testing.json_client import JsonClient
from testing.server import Server
from testing.torture.open_loop import OpenLoop
from testing.torture.workloads import ARMS

_CONNECTIONS = 512
_FEW = 64
_TIMES = (0.5, 1.0, 2.0, 5.0)
_EXPERIMENT = "overload"
# Well above any rate that it can take: what it then answers over connections that fit into its queue is its capacity.
_MORE_THAN_ANY = 12_000.0
_RECOVERED_WITHIN_MS = 100.0


def measure(database_url: str, seconds: float, queue_limit: int) -> dict[str, Any]:
    """Parts of the capacity and multiples of it, one after the other, and after each how long it takes to answer as before."""
    with Server(database_url, BESTARM_QUEUE_LIMIT=str(queue_limit)) as server:
        with JsonClient(server.url) as client:
            client.create(_EXPERIMENT, arms=ARMS)
        return asyncio.run(_measure(server.port, seconds)) | {"queue_limit": queue_limit, "connections": _CONNECTIONS}


async def _measure(port: int, seconds: float) -> dict[str, Any]:
    loop, few = OpenLoop(port, _EXPERIMENT, _CONNECTIONS), OpenLoop(port, _EXPERIMENT, _FEW)
    await few.offer(500, seconds / 2)  # so that everything is warm
    found = await few.offer(_MORE_THAN_ANY, seconds)
    capacity = len(found.answered) / seconds
    steps = []
    for times in _TIMES:
        offered = await loop.offer(times * capacity, seconds)
        steps.append({"times": times, **offered.summary(), "recovery_seconds": await _recovery(port)})
    return {"capacity_per_second": round(capacity), "steps": steps}


async def _recovery(port: int) -> float:
    """Until ten lone asks in a row are answered as quickly as ever."""
    began, good, lone = time.monotonic(), 0, OpenLoop(port, _EXPERIMENT, 1)
    while good < 10:
        asked = await lone.offer(1_000, 0.001)
        good = good + 1 if asked.answered and max(asked.answered) * 1_000 < _RECOVERED_WITHIN_MS else 0
    return round(time.monotonic() - began, 2)
