"""Restarts under load, through nginx and haproxy: is any request failed, and is anything that was answered lost?

python -m benchmarks.restarts [--proxy nginx] [--restarts 10]

Two services of two workers on one PostgreSQL, behind a proxy with its configuration of deploy/proxies/, are stopped by SIGTERM
and started again in turn, while clients ask without a pause on connections that they keep.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections import Counter
from pathlib import Path

from benchmarks import subjects
from testing.databases import migrate_now
from testing.reverse_proxy import ProxyKind
from testing.rolling_restarts import DRAIN_SECONDS, restart_under_load

RESULTS = Path(__file__).parent / "results/restarts.json"
_PROXIES: tuple[ProxyKind, ...] = ("nginx", "haproxy")


def main() -> None:
    """Restart, print, keep; one proxy alone is added to what is kept, so that a long run can be had in pieces."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--restarts", type=int, default=20)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--proxy", choices=_PROXIES)
    chosen = parser.parse_args()
    runs: list[dict[str, object]] = json.loads(RESULTS.read_text())["runs"] if chosen.proxy and RESULTS.exists() else []
    with subjects.cluster() as postgres, tempfile.TemporaryDirectory() as folder:
        for kind in (chosen.proxy,) if chosen.proxy else _PROXIES:
            postgres.sql(f"CREATE DATABASE behind_{kind}")
            url = postgres.url(f"behind_{kind}")
            migrate_now(url)
            began = time.monotonic()
            outcome = restart_under_load(kind, Path(folder), url, restarts=chosen.restarts, workers=chosen.workers)
            runs.append(
                {
                    "proxy": kind,
                    "restarts": chosen.restarts,
                    "answered": outcome.answered,
                    "refused": len(outcome.refused),
                    "broken": len(outcome.broken),
                    "answered_and_not_stored": outcome.lost,
                    "exit_codes_that_are_not_0": sum(code != 0 for code in outcome.exit_codes),
                    "seconds": round(time.monotonic() - began),
                }
            )
            print(runs[-1], Counter(outcome.refused), outcome.broken[:5], flush=True)
    kept = {"workers": chosen.workers, "drain_seconds": float(DRAIN_SECONDS), "runs": runs}
    RESULTS.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
