"""How an export hears that there are others to serve."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from service.application.live.export_frames import frame_bytes
from service.application.live.export_lane import ExportLane, RunningExport, busy_seconds, is_busy
from service.domain.callers import SERVICE


def main() -> None:
    """In a process of the lane: a file whose pieces are what the worker tells."""
    sys.stdout.buffer.write(frame_bytes("begun", b"7"))
    sys.stdout.buffer.flush()
    while told := os.read(0, 1):
        sys.stdout.buffer.write(frame_bytes("piece", told))
        sys.stdout.buffer.flush()


async def _next_told(pieces: AsyncIterator[bytes], *, busy: bool) -> int:
    """What the process hears next, of a worker that works all the time meanwhile, or does nothing."""
    told = asyncio.ensure_future(anext(pieces))
    while busy and not told.done():
        began = time.process_time()
        while time.process_time() - began < 0.005:
            pass
        await asyncio.sleep(0)
    return ord(await told)


async def _told_of_two() -> list[int]:
    lane = ExportLane()
    async with AsyncExitStack() as ended_later:

        async def begun() -> RunningExport:
            return await ended_later.enter_async_context(lane.run(SERVICE, __name__, b""))

        first = (await begun()).pieces()
        told = [await _next_told(first, busy=True)]
        second = (await begun()).pieces()
        while (word := await _next_told(first, busy=True)) != 2:
            assert word in (0, 1)  # while the second one started
        told += [
            word,
            await _next_told(second, busy=True),
            await _next_told(first, busy=False),
            await _next_told(second, busy=False),
        ]
    return told


@pytest.mark.process
def test_exports_hear_how_many_share_what_a_busy_worker_leaves() -> None:
    """The first alone, then both; and both that it is busy no more."""
    assert asyncio.run(_told_of_two()) == [1, 2, 2, 0, 0]


@pytest.mark.parametrize(
    ("seconds", "busy_for", "busy"),
    [(0.1, 0.09, True), (0.1, 0.04, False), (10.0, 9.0, True), (10.0, 0.1, False), (0.0, 0.0, False)],
    ids=["asks come all the time", "few asks", "long looked at, beside asks", "long looked at, alone", "no time at all"],
)
def test_a_worker_is_busy_that_has_more_to_do_than_to_send_a_file(seconds: float, busy_for: float, *, busy: bool) -> None:
    """By what it worked, and waited for a processor to work on; nobody waits for an export that is alone."""
    assert is_busy(seconds, busy_for) is busy


def test_work_is_busy_and_sleep_is_not() -> None:
    """A worker that sleeps longer than it works is not taken for busy."""
    began, worked = busy_seconds(), time.process_time()
    while time.process_time() - worked < 0.02:
        pass
    assert (done := busy_seconds()) - began >= 0.02
    time.sleep(0.2)
    assert busy_seconds() - done < 0.2
