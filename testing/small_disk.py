"""A disk of its own, so small that it can be filled: a tmpfs, which needs root."""

from __future__ import annotations

import os
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Self

_CHUNK = 64 * 1024


class SmallDisk:
    """A folder on a file system with so many bytes."""

    def __init__(self, size: int) -> None:
        if os.geteuid() != 0:
            raise RuntimeError("A disk that can be filled is mounted for the test: run it as root.")
        self.folder = Path(tempfile.mkdtemp(prefix="bestarm-disk-", dir="/tmp"))
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", self.folder], check=True)  # noqa: S607 - of the system
        self.folder.chmod(0o777)

    @property
    def _filling(self) -> Path:
        return self.folder / "filling"

    def fill(self) -> None:
        """Leave no byte."""
        with suppress(OSError), self._filling.open("ab", buffering=0) as file:
            while file.write(b"\0" * _CHUNK):
                pass

    def make_room(self) -> None:
        """Take that back."""
        self._filling.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        subprocess.run(["umount", "--lazy", self.folder], check=True)  # noqa: S607 - of the system
        self.folder.rmdir()
