"""More than a service can take: what it still does, how soon it refuses the rest, and how soon all is well again."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from testing.json_client import JsonClient
from testing.memory import processes_of
from testing.server import Server
from testing.torture.open_loop import Offered, OpenLoop
from testing.torture.workloads import ARMS

_CONNECTIONS = 512
_TIMES = (0.5, 1.0, 2.0, 5.0)
_EXPERIMENT = "overload"
# The search for the capacity begins here and doubles until less than this part of what is offered is answered.
_FIRST_RATE, _KEPT_UP = 1_000.0, 0.95
_RECOVERED_WITHIN_MS = 100.0
# A client that takes so much of its core is the limit itself; and so is other work that takes so much of the cores.
_BUSY, _CROWDED = 0.9, 0.2
# No setting gives a request a deadline of its own. What bounds its wait is the queue, "a second or two of work" at its default
# (service/domain/limits.py), and here a thirtieth of that; who finds no place in it waits 25 ms more. Longer it is only where
# the database does not answer (STATEMENT_SECONDS), and this one does.
LONGEST_WAIT_MS = 2_000.0


def measure(database_url: str, seconds: float, queue_limit: int) -> dict[str, Any]:
    """Parts of the capacity and multiples of it, one after the other, and after each how long it takes to answer as before."""
    with Server(database_url, BESTARM_QUEUE_LIMIT=str(queue_limit)) as server:
        with JsonClient(server.url) as client:
            client.create(_EXPERIMENT, arms=ARMS)
        with _cores_apart():
            found = asyncio.run(_measure(server, seconds))
    return found | {"queue_limit": queue_limit, "connections": _CONNECTIONS}


@contextmanager
def _cores_apart() -> Iterator[None]:
    """This process has one core, all that it has started the others: what the client takes is not the service's."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) > 1:
        for pid in processes_of(os.getpid())[1:]:
            for thread in Path(f"/proc/{pid}/task").iterdir():
                with suppress(ProcessLookupError):
                    os.sched_setaffinity(int(thread.name), cores[:-1])
        os.sched_setaffinity(0, cores[-1:])
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


async def _measure(server: Server, seconds: float) -> dict[str, Any]:
    port = server.port
    loop = OpenLoop(port, _EXPERIMENT, _CONNECTIONS)
    await loop.offer(500, seconds / 2)  # so that everything is warm
    capacity, client_s = await _capacity(loop, seconds)
    steps = []
    for times in _TIMES:
        used, others, began = _processor_seconds(server.process.pid), others_seconds(), time.monotonic()
        offered, busy = await _offered(loop, times * capacity, seconds)
        used = _processor_seconds(server.process.pid) - used
        others = (others_seconds() - others) / (time.monotonic() - began)
        recovery = await _recovery(port)
        steps.append(
            {
                "times": times,
                **offered.summary(),
                "client_s_core": busy,
                "service_s_core": round(used / seconds, 2),
                "others_cores": round(max(0.0, others), 2),
                "service_us_an_answer": round(1e6 * used / max(1, len(offered.answered))),
                "recovery_seconds": recovery,
            }
        )
    return {"capacity_per_second": round(capacity), "client_s_core_at_capacity": client_s, "steps": steps}


async def _capacity(loop: OpenLoop, seconds: float) -> tuple[float, float]:
    """The most that is answered a second, twice as much being offered until it falls behind; what the client took of its core."""
    best, rate = (0.0, 0.0), _FIRST_RATE
    while True:
        offered, busy = await _offered(loop, rate, seconds)
        best = max(best, (len(offered.answered) / seconds, busy))
        if len(offered.answered) < _KEPT_UP * offered.offered:
            return best
        rate *= 2


async def _offered(loop: OpenLoop, per_second: float, seconds: float) -> tuple[Offered, float]:
    """How it went, and for which part of the time the client ran, or would have if others had left it its core."""
    began, wanted = time.monotonic(), _wanted_seconds()
    offered = await loop.offer(per_second, seconds)
    return offered, round((_wanted_seconds() - wanted) / (time.monotonic() - began), 2)


def _wanted_seconds() -> float:
    ran, waited, _ = map(int, Path("/proc/self/schedstat").read_text().split())
    return (ran + waited) / 1e9


def _processor_seconds(pid: int) -> float:
    """Of a process with all its threads. One worker is one process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def others_seconds() -> float:
    """Of the whole machine, but for this process and all that it has started."""
    names = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    user, nice, system, _idle, _waiting, *interrupts = map(int, names[:8])
    busy = (user + nice + system + sum(interrupts)) / os.sysconf("SC_CLK_TCK")
    return busy - sum(_processor_seconds(pid) for pid in processes_of(os.getpid()))


def is_crowded(step: dict[str, Any]) -> bool:
    """Had the machine other work, so that its times are not the service's?"""
    return bool(step.get("others_cores", 0) > _CROWDED)


def is_client_bound(step: dict[str, Any]) -> bool:
    """Was it the client that could not do more?"""
    return bool(step.get("client_s_core", 0) > _BUSY)


async def _recovery(port: int) -> float:
    """Until ten lone asks in a row are answered as quickly as ever."""
    began, good, lone = time.monotonic(), 0, OpenLoop(port, _EXPERIMENT, 1)
    while good < 10:
        asked = await lone.offer(1_000, 0.001)
        good = good + 1 if asked.answered and max(asked.answered) * 1_000 < _RECOVERED_WITHIN_MS else 0
    return round(time.monotonic() - began, 2)
