"""How much memory a tree of processes has, looked at ten times a second."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Self

from testing.memory import processes_of

# Anonymous: what only memory can hold. Resident: with the files that are mapped, each counted in every process that maps it.
_NAMES = {"anonymous": "Anonymous", "proportional": "Pss", "resident": "Rss"}
_EVERY_SECONDS = 0.1


def mib(size: float) -> str:
    """In mebibytes."""
    return f"{size / 2**20:,.0f} MiB"


def memory_of(pid: int) -> dict[str, int]:
    """Bytes of a process and all its children together; those that end meanwhile are left out."""
    total = dict.fromkeys(_NAMES, 0)
    for one in processes_of(pid):
        try:
            text = Path(f"/proc/{one}/smaps_rollup").read_text()
        except OSError:
            continue
        for name, line in _NAMES.items():
            found = re.search(rf"^{line}:\s+(\d+)", text, re.MULTILINE)
            total[name] += 1024 * int(found[1]) if found else 0
    return total


class TreeMemory:
    """The most of each kind that was seen while it is open."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self.most = dict.fromkeys(_NAMES, 0)

    def _watch(self) -> None:
        while not self._closed.wait(_EVERY_SECONDS):
            try:
                now = memory_of(self._pid)
            except OSError:  # a process ended while its children were listed
                continue
            self.most = {name: max(self.most[name], now[name]) for name in now}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        self._thread.join()
