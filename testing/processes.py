"""Processes of this machine, as Linux shows them."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

_WAIT_SECONDS = 120.0


def children_of(pid: int) -> list[int]:
    """The processes that this one has started, in order, without the one that tidies up after Python's own."""
    found: list[int] = []
    with suppress(FileNotFoundError, ProcessLookupError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            found += [int(child) for child in (thread / "children").read_text().split()]
    return sorted(child for child in found if "resource_tracker" not in _command(child))


def _command(pid: int) -> str:
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/cmdline").read_text()
    return ""


def is_running(pid: int) -> bool:
    """Is there such a process, and is it more than what its parent has not heard of yet?"""
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    return False


def wait_until(holds: Callable[[], object], what: str) -> None:
    """Look again and again until it holds; fails if it does not come to that."""
    deadline = time.monotonic() + _WAIT_SECONDS
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)
