"""What an export's process and its worker say to each other through a socket: frames of a kind, a length and a content."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from asyncio import StreamReader

FrameKind: TypeAlias = Literal["begun", "piece", "ended", "refused", "failed"]
_KINDS: tuple[FrameKind, ...] = ("begun", "piece", "ended", "refused", "failed")
_HEAD = struct.Struct("!BI")
# A worker holds one frame at a time of each export.
LARGEST_FRAME = 256 * 1024


class Frame(NamedTuple):
    """One message of the process: `ended` is the only one that may come last."""

    kind: FrameKind
    content: bytes


def frame_bytes(kind: FrameKind, content: bytes = b"") -> bytes:
    """A message as it is sent."""
    return _HEAD.pack(_KINDS.index(kind), len(content)) + content


async def next_frame(reader: StreamReader) -> Frame:
    """The next message; IncompleteReadError if there is none any more."""
    kind, length = _HEAD.unpack(await reader.readexactly(_HEAD.size))
    return Frame(_KINDS[kind], await reader.readexactly(length))
