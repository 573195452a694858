"""Finished blocks on disk, one line each, written as they finish: an interrupted study goes on where it stopped."""

from __future__ import annotations

import json
import zlib
from typing import IO, TYPE_CHECKING

from service.errors import InvalidValue

if TYPE_CHECKING:
    from pathlib import Path

    from service.simulation.runner import Block, Counts

FILE_NAME = "parts.jsonl"


class FinishedBlocks:
    """The finished blocks of one output folder; a block is known by everything that could change its counts."""

    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._path = folder / FILE_NAME
            self._known = self._read()
            self._file: IO[str] = self._path.open("a")
        except OSError as error:
            raise InvalidValue("/out", f"Cannot write to {folder}: {error.strerror}.") from error

    def _read(self) -> dict[str, Counts]:
        """All whole lines; a last line cut off by a crash is dropped from the file too."""
        if not self._path.exists():
            return {}
        text = self._path.read_text()
        whole = text[: text.rfind("\n") + 1]
        if whole != text:
            self._path.write_text(whole)
        try:
            return {part["block"]: tuple(part["errors"]) for part in map(json.loads, whole.splitlines())}
        except (ValueError, KeyError, TypeError):
            raise InvalidValue("/out", f"{self._path} does not hold the parts of a study; move it away.") from None

    def find(self, block: Block) -> Counts | None:
        """The block's counts if it was played before."""
        return self._known.get(_name(block))

    def add(self, block: Block, errors: Counts) -> None:
        """Keep a finished block."""
        self._known[_name(block)] = errors
        self._file.write(json.dumps({"block": _name(block), "errors": errors}) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file; no block can be added any more."""
        self._file.close()


def _name(block: Block) -> str:
    """Everything that makes the counts what they are."""
    points = zlib.crc32(repr(block.cell.checkpoints).encode())
    return f"{block.seed}|{block.cell.key()}|{points:08x}|{block.number}|{block.runs}"
