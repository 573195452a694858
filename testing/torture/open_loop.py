"""Load that does not wait: requests come when they come, whether or not the ones before were answered."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field

_DEADLINE_SECONDS = 10.0


@dataclass(slots=True)
class Offered:
    """How the requests of an open loop ended."""

    offered: int = 0
    unsent: int = 0
    """Those for which no connection became free in time."""
    statuses: Counter[int | str] = field(default_factory=Counter)
    answered: list[float] = field(default_factory=list)
    """Seconds from when each was due; one that had to wait for a connection has waited, too."""
    answered_since_sent: list[float] = field(default_factory=list)
    refused: list[float] = field(default_factory=list)
    bare_refusals: int = 0
    """Of those, the ones that do not say when to come again."""
    seconds: float = 0.0

    def summary(self) -> dict[str, object]:
        """For the table."""
        return {
            "offered_per_second": round(self.offered / self.seconds),
            "sent_per_second": round((self.offered - self.unsent) / self.seconds),
            "goodput_per_second": round(len(self.answered) / self.seconds),
            "answered_p99_ms": _part(self.answered, 0.99),
            "answered_p99_since_sent_ms": _part(self.answered_since_sent, 0.99),
            "answered_worst_ms": _part(self.answered, 1),
            "refused": len(self.refused),
            "refused_median_ms": _part(self.refused, 0.5),
            "refused_p99_ms": _part(self.refused, 0.99),
            "waited_worst_ms": _part(self.answered_since_sent + self.refused, 1),
            "bare_refusals": self.bare_refusals,
            "statuses": {str(status): count for status, count in sorted(self.statuses.items(), key=str)},
        }


def _part(times: list[float], part: float) -> float:
    ordered = sorted(times)
    return round(ordered[min(len(ordered) - 1, int(part * len(ordered)))] * 1000, 1) if ordered else 0.0


class OpenLoop:
    """Connections that are kept, and a clock that says when the next request goes."""

    def __init__(self, port: int, experiment: str, connections: int) -> None:
        body = b"{}"
        self._request = (
            f"POST /v1/experiments/{experiment}/assignments HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\n\r\n"
        ).encode() + body
        self._port, self._connections = port, connections
        self._due: asyncio.Queue[float] = asyncio.Queue()
        self._seen = Offered()

    async def offer(self, per_second: float, seconds: float) -> Offered:
        """So many a second, evenly, for so long. What found no free connection by then is not sent."""
        self._seen = Offered(seconds=seconds)
        workers = [asyncio.create_task(self._work()) for _ in range(self._connections)]
        began, sent = time.monotonic(), 0
        while (passed := time.monotonic() - began) < seconds:
            while sent < passed * per_second:
                self._due.put_nowait(began + sent / per_second)
                sent += 1
            await asyncio.sleep(0.001)
        self._seen.offered = sent
        while not self._due.empty():
            self._due.get_nowait()
            self._due.task_done()
            self._seen.unsent += 1
        await asyncio.wait_for(self._due.join(), 60)
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        return self._seen

    async def _work(self) -> None:
        streams = None
        try:
            while True:
                due = await self._due.get()
                try:
                    streams = streams or await asyncio.open_connection("127.0.0.1", self._port)
                    async with asyncio.timeout(_DEADLINE_SECONDS):
                        await self._send(due, *streams)
                except (OSError, TimeoutError, asyncio.IncompleteReadError) as failure:
                    self._seen.statuses[type(failure).__name__] += 1
                    if streams is not None:
                        streams[1].close()
                    streams = None
                finally:
                    self._due.task_done()
        finally:
            if streams is not None:
                streams[1].close()

    async def _send(self, due: float, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        began, seen = time.monotonic(), self._seen
        writer.write(self._request)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        await reader.readexactly(int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0]))
        ended, status = time.monotonic(), int(head[9:12])
        seen.statuses[status] += 1
        if status == 201:
            seen.answered.append(ended - due)
            seen.answered_since_sent.append(ended - began)
        elif status in {429, 503}:
            seen.refused.append(ended - began)
            seen.bare_refusals += b"\r\nretry-after:" not in head
