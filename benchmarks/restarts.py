"""Restarts under load, through nginx and haproxy: is any request failed, and is anything that was answered lost?

python -m benchmarks.restarts

Two services of two workers on one PostgreSQL, behind a proxy with its configuration of deploy/proxies/, are stopped by SIGTERM
and started again in turn, while clients ask without a pause on connections that they keep.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

from benchmarks import subjects
from testing.databases import migrate_now
from testing.reverse_proxy import ProxyKind
from testing.rolling_restarts import DRAIN_SECONDS, restart_under_load

RESULTS = Path(__file__).parent / "results/restarts.json"
_PROXIES: tuple[ProxyKind, ...] = ("nginx", "haproxy")


def main() -> None:
    """Restart, print, keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--restarts", type=int, default=20)
    parser.add_argument("--workers", type=int, default=2)
    chosen = parser.parse_args()
    kept: dict[str, object] = {"restarts": chosen.restarts, "workers": chosen.workers, "drain_seconds": float(DRAIN_SECONDS)}
    with subjects.cluster() as postgres, tempfile.TemporaryDirectory() as folder:
        for kind in _PROXIES:
            postgres.sql(f"CREATE DATABASE behind_{kind}")
            url = postgres.url(f"behind_{kind}")
            migrate_now(url)
            began = time.monotonic()
            outcome = restart_under_load(kind, Path(folder), url, restarts=chosen.restarts, workers=chosen.workers)
            kept[kind] = {
                "answered": outcome.answered,
                "refused": len(outcome.refused),
                "broken": len(outcome.broken),
                "answered_and_not_stored": outcome.lost,
                "exit_codes_that_are_not_0": sum(code != 0 for code in outcome.exit_codes),
                "seconds": round(time.monotonic() - began),
            }
            print(kind, kept[kind], flush=True)
    RESULTS.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
