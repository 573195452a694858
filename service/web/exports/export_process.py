"""The process of one export: reads its order from the input, writes frames to the output, and is gone.

The worker takes frames as fast as its reader takes the file, so a slow reader makes this process wait in `write`, with a thousand
rows in memory.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import sys
import threading
import traceback
from contextlib import suppress

import msgspec

from service.application.live.export_frames import LARGEST_FRAME, frame_bytes
from service.application.live.export_pace import ExportPace
from service.errors import BestArmError
from service.storage.row_streams.row_source import RowSource
from service.web.exports.export_file import FileOrder, file_pieces

_INPUT, _OUTPUT = 0, 1


class _Without:
    """Finds nothing of packages that pyarrow imports where they are there: pandas takes 40 MB, numpy 6 (measured)."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def find_spec(self, name: str, *_: object) -> None:
        """Say that it is not installed."""
        if name in self._names:
            raise ModuleNotFoundError(name)


class ProcessOrder(msgspec.Struct, frozen=True):
    """Which file to make, and of which database."""

    source: RowSource
    wanted: FileOrder


def order_line(source: RowSource, wanted: FileOrder) -> bytes:
    """An order as the process reads it."""
    return msgspec.json.encode(ProcessOrder(source, wanted)) + b"\n"


async def _make(order: ProcessOrder, pace: ExportPace) -> None:
    begun = False
    async for piece in file_pieces(order.source, order.wanted):
        if not begun:
            begun = True
            _send(frame_bytes("begun", b"%d" % piece.version))
        for start in range(0, len(piece.content), LARGEST_FRAME):
            _send(frame_bytes("piece", piece.content[start : start + LARGEST_FRAME]))
        pace.rest(piece.waited)
    _send(frame_bytes("ended"))


def _send(frame: bytes) -> None:
    left = memoryview(frame)
    while left:
        left = left[os.write(_OUTPUT, left) :]


def _heed_worker(pace: ExportPace) -> None:
    """Every byte of the input is a word about the pace. It stays open for as long as somebody wants the file."""
    while told := os.read(_INPUT, 64):
        pace.tell(told[-1])
    os._exit(1)


def main() -> None:
    """Make one file."""
    # The worker says when to end: a signal to the whole group must not cut off a file that is still being taken.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with open(_INPUT, "rb", buffering=0, closefd=False) as unbuffered:  # what comes behind the order is not for here
        line = unbuffered.readline()
    if not line:
        return  # whoever wanted the file is gone
    order = msgspec.json.decode(line, type=ProcessOrder)
    # Only the course is computed; other rows go from the database into their file as they are.
    unneeded = ("pandas",) if order.wanted.order.of == "history" else ("pandas", "numpy")
    sys.meta_path.insert(0, _Without(*unneeded))
    pace = ExportPace()
    threading.Thread(target=_heed_worker, args=[pace], daemon=True).start()
    with suppress(BrokenPipeError):  # nobody wants it any more
        try:
            asyncio.run(_make(order, pace))
        except BestArmError as refused:
            _send(frame_bytes("refused", pickle.dumps(refused)))
        except BrokenPipeError:
            raise
        except Exception:  # noqa: BLE001 - whatever it is, it is told
            _send(frame_bytes("failed", traceback.format_exc().encode()))
