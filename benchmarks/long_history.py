"""How long a history of 100,000 draws with everything in it takes to write, and to replay (`make live-long`).

python -m benchmarks.long_history [DRAWS]
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

from service.domain import Expiry
from testing.databases import migrate_now
from testing.history import write_history
from testing.workers import Workers

DRAWS = 100_000


def measure(url: str, draws: int) -> dict[str, float]:
    """Write it, replay it, and how long both took."""
    workers = Workers(url)
    workers.create("long", [(f"arm-{number}", 0.0) for number in range(10)], expiry=Expiry(3_600.0, 0.0))
    began = time.monotonic()
    write_history(workers, "long", draws)
    wrote = time.monotonic() - began
    began, began_cpu = time.monotonic(), time.process_time()
    events = workers.replay("long")
    took, cpu = time.monotonic() - began, time.process_time() - began_cpu
    workers.close()
    return {"draws": draws, "events": events, "write_seconds": wrote, "replay_seconds": took, "replay_cpu_seconds": cpu}


def main() -> None:
    """Measure on SQLite, print."""
    with tempfile.TemporaryDirectory() as folder:
        place = f"sqlite:///{Path(folder) / 'long.db'}"
        migrate_now(place)
        figures = measure(place, int(sys.argv[1]) if len(sys.argv) > 1 else DRAWS)
    print(json.dumps({name: round(value, 2) for name, value in figures.items()}))


if __name__ == "__main__":
    main()
