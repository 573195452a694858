"""Many viewers: what a poll answered 304 costs beside an empty FastAPI route, and whether 500 streams stay fresh and flat.

Costs are processor time of the server per request, from the same run, so that a busy machine does not matter.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import random
import signal
import subprocess
import sys
import tempfile
import time
from bisect import bisect_left
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from service.main import create_app
from testing.server import free_port

if TYPE_CHECKING:
    from fastapi import FastAPI

RESULT = Path(__file__).parent / "results" / "viewers.json"
KEY = "watched"
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


def app() -> FastAPI:
    """The service with one more route, which does nothing: what a request costs at least."""
    service = create_app()

    @service.get("/empty")
    async def empty() -> None:
        return None

    return service


class Service:
    """A server of its own, with its processor time and memory."""

    def __init__(self, folder: str) -> None:
        self.port = free_port()
        environment = os.environ | {"BESTARM_DATABASE_URL": f"sqlite:///{folder}/viewers.db"}
        subprocess.run([sys.executable, "-m", "service", "migrate"], env=environment, check=True, capture_output=True)
        command = [sys.executable, "-m", "uvicorn", "benchmarks.viewers:app", "--factory", "--port", str(self.port)]
        quietly = ["--no-access-log", "--log-level", "warning", "--timeout-graceful-shutdown", "20"]
        self.process = subprocess.Popen([*command, *quietly], env=environment)

    def cpu_seconds(self) -> float:
        """Processor time so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def megabytes(self) -> float:
        """Resident memory."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * PAGE / 1e6

    def stop(self) -> float:
        """Seconds until it stopped after SIGTERM."""
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)
        return time.monotonic() - began


class Client:
    """HTTP/1.1 on one connection: only what is needed, so that the client costs little."""

    def __init__(self, port: int) -> None:
        self.port = port

    async def open(self) -> Client:
        """Connect, patiently while the server starts."""
        for _ in range(600):
            try:
                self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port, limit=2**22)
            except OSError:
                await asyncio.sleep(0.1)
            else:
                return self
        raise TimeoutError

    async def ask(self, request: bytes) -> tuple[int, dict[bytes, bytes], bytes]:
        """Status, headers and body."""
        self.writer.write(request)
        head = await self.reader.readuntil(b"\r\n\r\n")
        lines = head.split(b"\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(b": ") for line in lines[1:] if line)}
        body = await self.reader.readexactly(int(headers.get(b"content-length", b"0")))
        return int(lines[0].split()[1]), headers, body

    async def post(self, path: str, body: object) -> Any:  # noqa: ANN401 - any JSON
        """Send JSON, get JSON."""
        sent = json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(sent)}\r\n\r\n"
        status, _, answer = await self.ask(head.encode() + sent)
        assert status < 300, answer  # noqa: PLR2004, S101 - a benchmark that fails must say so
        return json.loads(answer)


def get(path: str, **headers: str) -> bytes:
    """A request."""
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n".encode()


async def visit(client: Client, visitors: int) -> int:
    """Some visitors ask and tell; the version afterwards, at least."""
    where = f"/v1/experiments/{KEY}"
    asked = (await client.post(f"{where}/assignments/batch", {"count": visitors}))["assignments"]
    told = [{"assignment": one["id"], "reward": int(random.random() < 0.3)} for one in asked]  # noqa: S311, PLR2004 - visitors
    await client.post(f"{where}/rewards", {"rewards": told})
    _, _, body = await client.ask(get(where))
    return int(json.loads(body)["version"])


async def cost(service: Service, clients: list[Client], request: bytes, requests: int) -> tuple[float, float, int]:
    """Server microseconds per request, requests per second, and the last status."""
    status = 0

    async def one(client: Client) -> None:
        nonlocal status
        for _ in range(requests // len(clients)):
            status, _, _ = await client.ask(request)

    before, began = service.cpu_seconds(), time.monotonic()
    await asyncio.gather(*(one(client) for client in clients))
    return (service.cpu_seconds() - before) / requests * 1e6, requests / (time.monotonic() - began), status


async def study_304(service: Service, requests: int) -> dict[str, Any]:
    """A 304 against an empty route, in alternating rounds."""
    first = await Client(service.port).open()
    await visit(first, 200)
    path = f"/v1/experiments/{KEY}/recommendation"
    _, headers, _ = await first.ask(get(path))
    known = get(path, If_None_Match=headers[b"etag"].decode())
    chart = f"/v1/experiments/{KEY}/charts/traffic.svg"
    _, headers, _ = await first.ask(get(chart))
    known_chart = get(chart, If_None_Match=headers[b"etag"].decode())
    found: dict[str, Any] = {}
    for connections in (1, 64):
        clients = [await Client(service.port).open() for _ in range(connections)]
        rounds: dict[str, list[tuple[float, float]]] = {"empty": [], "304": [], "chart 304": []}
        for _ in range(5):
            for name, request, expected in (("empty", get("/empty"), 200), ("304", known, 304), ("chart 304", known_chart, 304)):
                micro, rate, status = await cost(service, clients, request, requests)
                assert status == expected, (name, status)  # noqa: S101 - see above
                rounds[name].append((micro, rate))
        costs = {name: median(micro for micro, _ in one) for name, one in rounds.items()}
        found[f"{connections} connections"] = {
            "server_microseconds_per_request": {name: round(value, 1) for name, value in costs.items()},
            "requests_per_second": {name: round(median(rate for _, rate in one)) for name, one in rounds.items()},
            "cost_of_304_by_empty_route": round(costs["304"] / costs["empty"], 2),
            "cost_of_chart_304_by_empty_route": round(costs["chart 304"] / costs["empty"], 2),
        }
    return found


async def watch(port: int, seen: list[tuple[float, int]], *, reads: bool) -> None:
    """One stream: when which version came."""
    client = await Client(port).open()
    client.writer.write(get(f"/v1/experiments/{KEY}/stream"))
    if not reads:  # a viewer that fell asleep: the server must not queue for it
        await asyncio.sleep(3600)
    while line := await client.reader.readline():
        if line.startswith(b"id: "):
            seen.append((time.monotonic(), int(line[4:])))


async def study_streams(service: Service, viewers: int, seconds: float) -> dict[str, Any]:
    """Open streams on a changing experiment: freshness, rate, memory."""
    driver = await Client(service.port).open()
    seen: list[list[tuple[float, int]]] = [[] for _ in range(viewers)]
    tasks = [asyncio.create_task(watch(service.port, events, reads=True)) for events in seen]
    sleepers = [asyncio.create_task(watch(service.port, [], reads=False)) for _ in range(max(1, viewers // 50))]
    while not all(seen):  # noqa: ASYNC110 - a benchmark may poll its own lists
        await asyncio.sleep(0.1)
    changes: list[tuple[float, int]] = []
    memory: list[float] = []
    before, began = service.cpu_seconds(), time.monotonic()
    while time.monotonic() - began < seconds:
        version = await visit(driver, 5)
        changes.append((time.monotonic(), version))
        if len(memory) <= (time.monotonic() - began) / 5:
            memory.append(round(service.megabytes(), 1))
        await asyncio.sleep(0.1)
    spent, lasted = service.cpu_seconds() - before, time.monotonic() - began
    await asyncio.sleep(3)
    lags = sorted(lag for events in seen for lag in _lags(changes, events))
    rates = [sum(began <= at < began + lasted for at, _ in events) / lasted for events in seen]
    for task in [*tasks, *sleepers]:
        task.cancel()
    settled = memory[len(memory) // 4 :] or memory
    return {
        "viewers": viewers,
        "sleeping_viewers": len(sleepers),
        "seconds": round(lasted, 1),
        "changes": len(changes),
        "states_seen_per_viewer_and_second": {"least": round(min(rates), 2), "most": round(max(rates), 2)},
        "seconds_until_seen": {
            "median": round(median(lags), 3),
            "p99": round(lags[int(len(lags) * 0.99)], 3),
            "largest": round(lags[-1], 3),
        },
        "server_cpu_share": round(spent / lasted, 3),
        "megabytes": {"begin": memory[0], "quarter": settled[0], "end": memory[-1], "largest": max(memory)},
    }


def _lags(changes: list[tuple[float, int]], events: list[tuple[float, int]]) -> list[float]:
    """For each change: how long until this viewer saw it or something newer."""
    versions = [version for _, version in events]
    lags = []
    for at, version in changes:
        place = bisect_left(versions, version)
        lags.append(max(0.0, events[place][0] - at) if place < len(events) else float("inf"))
    return lags


async def study(service: Service, viewers: int, seconds: float, requests: int) -> dict[str, Any]:
    """Both studies on one experiment of ten arms."""
    first = await Client(service.port).open()
    await first.post("/v1/experiments", {"key": KEY, "arms": [{"key": f"arm-{number}"} for number in range(10)]})
    return {"polls": await study_304(service, requests), "streams": await study_streams(service, viewers, seconds)}


def main() -> None:
    """Run, print, keep."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--viewers", type=int, default=500)
    options.add_argument("--seconds", type=float, default=120)
    options.add_argument("--requests", type=int, default=1920)
    options.add_argument("--output", type=Path, default=RESULT)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        service = Service(folder)
        try:
            found = asyncio.run(study(service, chosen.viewers, chosen.seconds, chosen.requests))
        finally:
            stopped = service.stop()
    found["streams"]["seconds_to_stop"] = round(stopped, 2)
    machine = {
        "processors": os.cpu_count(),
        "load": [round(one, 1) for one in os.getloadavg()],
        "python": platform.python_version(),
    }
    written = json.dumps({"machine": machine, **found}, indent=2) + "\n"
    chosen.output.parent.mkdir(exist_ok=True)
    chosen.output.write_text(written)
    print(written)


if __name__ == "__main__":
    main()
