"""What a study needs of memory: the real program with few runs, a hundred times the runs, and a hundred times the draws.

Two workers, the policies with the largest code. Read from /proc while it runs: the largest resident set that any one of its
processes ever had, and the largest sum over its processes in which shared pages count once (PSS).

    python -m benchmarks.simulation_memory --out benchmarks/results/simulation_memory.json
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

POLICIES = "simple_tracking,almost_tracking,ts_tc,simple_tracking:s=1.5,sr,cr_a"
CASES = {"few": (500, 1000), "a hundred times the runs": (50_000, 1000), "a hundred times the draws": (500, 100_000)}
LIMIT_MB = 500
_EVERY = 0.2


def memory_of(pid: int) -> tuple[int, int]:
    """(peak resident set, present PSS) in kB; zeros once the process is gone."""
    peak = present = 0
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                peak = int(line.split()[1])
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                present = int(line.split()[1])
    except (OSError, ValueError):
        return 0, 0
    return peak, present


def members(session: int) -> list[int]:
    """All processes of a session: the program and its workers."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == session:
                found.append(int(entry.name))
    return found


def measure(runs: int, draws: int) -> dict[str, float]:
    """One study from start to end."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "service", "simulate", "--instance", "9", "--budget", str(draws), "--runs", str(runs)]
        command += ["--policies", POLICIES, "--jobs", "2", "--out", folder]
        quiet = subprocess.DEVNULL
        start = time.monotonic()
        with subprocess.Popen(command, stdout=quiet, stderr=quiet, start_new_session=True) as process:
            largest = together = 0
            while process.poll() is None:
                found = [memory_of(pid) for pid in members(process.pid)]
                largest = max([largest, *(peak for peak, _ in found)])
                together = max(together, sum(present for _, present in found))
                time.sleep(_EVERY)
        if process.returncode != 0:
            message = f"The study ended with exit code {process.returncode}."
            raise RuntimeError(message)
    return {
        "runs": runs,
        "draws": draws,
        "largest_process_mb": round(largest / 1024, 1),
        "all_processes_mb": round(together / 1024, 1),
        "seconds": round(time.monotonic() - start, 1),
    }


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/simulation_memory.json"))
    arguments = parser.parse_args()
    measure(2, 500)  # so that no case is the one that compiles
    cases = {name: measure(*size) for name, size in CASES.items()}
    worst = max(case["largest_process_mb"] for case in cases.values())
    found = {"policies": POLICIES, "jobs": 2, "cases": cases, "limit_mb": LIMIT_MB, "within_limit": worst < LIMIT_MB}
    print(json.dumps(found, indent=1))
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
