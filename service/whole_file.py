"""A file that is there whole or not at all, whenever its writer is killed, and for its owner's eyes only."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from service.errors import Conflict, InvalidValue


@contextmanager
def whole_file(target: Path, *, replace: bool = False) -> Iterator[Path]:
    """A path to write to. When the block ends well, what was written there is the target, and on the disk."""
    if target.exists() and not replace:
        raise Conflict(f"{target} is there already.")
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    except OSError as trouble:
        raise InvalidValue("/file", f"{target} cannot be written: {trouble.strerror}.") from trouble
    os.close(handle)
    part = Path(name)
    try:
        yield part
        _sync(part)
        part.replace(target)
        _sync(target.parent)
    finally:
        with suppress(FileNotFoundError):
            part.unlink()


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
