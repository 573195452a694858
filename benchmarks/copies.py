"""Dump, load and backup of many draws, a million by default: how long, how large, in how much memory, and what asks notice.

    python -m benchmarks.copies [--draws N]

Each is a process as the command is one, beside a service that is asked at a steady rate; the memory is the most that the process
ever had. The loaded copy is replayed, which is part of the load. Writes benchmarks/results/copies.json, which says how many draws
it is of and how busy the machine was.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from benchmarks.hot_path import RESULTS
from benchmarks.load import Seen
from benchmarks.pruning import asked
from benchmarks.stored_draws import ENGINES, place, write_draws
from testing.server import Server

_LONGEST = 3_600


def run(url: str, *arguments: str) -> dict[str, float]:
    """One command, by a process of its own that says what it needed."""
    began = time.monotonic()
    script = (
        "import json, re, sys; from service.cli import app\n"
        "try:\n    app(sys.argv[1:])\nexcept SystemExit as end:\n    code = end.code\n"
        "print(json.dumps([code, int(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1]) / 1024]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env=os.environ | {"BESTARM_DATABASE_URL": url},
        capture_output=True,
        text=True,
        check=True,
        timeout=_LONGEST,
    )
    code, memory = json.loads(done.stdout.splitlines()[-1])
    if code:
        raise SystemExit(done.stderr)
    return {"seconds": time.monotonic() - began, "megabytes_of_memory": memory}


def beside(server: Server, url: str, *arguments: str) -> dict[str, float]:
    """The same while the service is asked; with what asks took before it and meanwhile."""
    alone = asked(server, "paced", 10)
    during: list[Seen] = []
    stopped = threading.Event()

    def ask() -> None:
        while not stopped.is_set():
            during.append(asked(server, "paced", 5))

    asking = threading.Thread(target=ask)
    asking.start()
    measured = run(url, *arguments)
    stopped.set()
    asking.join()
    whole = during[:-1] or during  # the last one may have outlived it
    return measured | {"p99_alone_ms": alone.p99_ms, "p99_beside_ms": max(one.p99_ms for one in whole)}


def measure(engine: str, draws: int, folder: Path) -> dict[str, object]:
    """One database, and another one like it to load into."""
    with place(engine) as where:
        source, target, found = where.new(), where.new(), dict[str, object]()
        write_draws(source, "old", draws, concluded=False)
        for url in (source, target):
            with Server(url) as server, server.client() as client:
                client.post("/v1/experiments", json={"key": "hot", "arms": [{"key": "a"}, {"key": "b"}]}).raise_for_status()
                asked(server, "full", 3)
                steps = (
                    _steps(folder, engine) if url == source else {"load": ("experiment", "load", f"{folder}/{engine}.jsonl.gz")}
                )
                for name, arguments in steps.items():
                    found[name] = beside(server, url, *arguments)
                    print(engine, name, json.dumps(found[name]), flush=True)
        sizes = {path.name.partition(".")[2]: path.stat().st_size / 1e6 for path in folder.glob(f"{engine}.*")}
        return found | {"megabytes": sizes}


def _steps(folder: Path, engine: str) -> dict[str, tuple[str, ...]]:
    steps: dict[str, tuple[str, ...]] = {
        "dump": ("experiment", "dump", "old", "--out", f"{folder}/{engine}.jsonl"),
        "dump, compressed": ("experiment", "dump", "old", "--out", f"{folder}/{engine}.jsonl.gz"),
        "replay": ("replay", "old"),
    }
    return steps | ({"backup": ("backup", f"{folder}/{engine}.db")} if engine == "sqlite" else {})


def main() -> None:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=1_000_000)
    draws = parser.parse_args().draws
    machine = {"python": platform.python_version(), "cores": os.cpu_count(), "load_before": os.getloadavg()[0]}
    kept: dict[str, object] = {"draws": draws, "machine": machine}
    with tempfile.TemporaryDirectory() as folder:
        for engine in ENGINES:
            kept[engine] = measure(engine, draws, Path(folder))
    (RESULTS / "copies.json").write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
