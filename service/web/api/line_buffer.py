"""A body that comes in pieces, cut at the ends of its lines; no more is held than a few pieces and one line."""

from __future__ import annotations

from service.domain.limits import LONGEST_LINE_BYTES

_END = b"\n"


class LineBuffer:
    """What has arrived and was not taken yet. Of a line that is too long only so much is kept as shows that."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._is_skipping = False

    def __len__(self) -> int:
        return len(self._held)

    def add(self, piece: bytes) -> None:
        """Hold one more piece."""
        if self._is_skipping:
            end = piece.find(_END)
            if end < 0:
                return
            piece, self._is_skipping = piece[end:], False
        self._held += piece
        kept = self._held.rfind(_END) + 1 + LONGEST_LINE_BYTES + 1
        if len(self._held) > kept:
            del self._held[kept:]
            self._is_skipping = True

    def take(self) -> bytes:
        """The whole lines."""
        whole = self._held.rfind(_END) + 1
        taken = bytes(self._held[:whole])
        del self._held[:whole]
        return taken

    def take_all(self) -> bytes:
        """The whole lines and, as nothing more will come, the last one without an end."""
        taken = bytes(self._held)
        self._held.clear()
        return taken
