"""How much memory a service has had, all its processes together."""

from __future__ import annotations

from pathlib import Path

from testing.server import Server


def processes_of(pid: int) -> list[int]:
    """A process and all that it and its children have started, by whichever thread."""
    listed = [path.read_text().split() for path in Path(f"/proc/{pid}/task").glob("*/children")]
    return [pid, *(found for children in listed for child in children for found in processes_of(int(child)))]


def most_memory(server: Server) -> int:
    """The most bytes that each of its processes has had at any time, added up."""
    total = 0
    for pid in processes_of(server.process.pid):
        status = Path(f"/proc/{pid}/status").read_text()
        total += 1024 * int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])
    return total
