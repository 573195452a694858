"""What idle webhooks cost those who ask: asks on a service without webhooks, and on one with ten that ask for everything.

    python -m benchmarks.webhooks [--seconds S] [--repetitions R]

The services run side by side on one PostgreSQL and are loaded in turn. Two without webhooks are the floor: where their ratio is
not 1, that is the machine's doing. The third one's ten webhooks ask for every event of every experiment and lead to a receiver
that answers; asks alone make nothing to be told, and `messages` says so. Writes webhooks.json among the results.
`python -m benchmarks.checkouts` compares with a release without webhooks.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
from contextlib import ExitStack
from pathlib import Path

from benchmarks import subjects
from benchmarks.hot_path import RESULTS, spread
from benchmarks.keys import KeyBench, measure
from testing.receiver import Receiver
from testing.server import Server

_WEBHOOKS = 10
RATIOS = (
    ("the floor: one service without webhooks against another", "without, again", "without"),
    ("ten webhooks against none", "ten webhooks", "without"),
)


def with_webhooks(bench: KeyBench, receiver: Receiver) -> Server:
    """A service with ten webhooks that ask for everything."""
    allowed = {"BESTARM_WEBHOOK_ALLOWED_NETWORKS": "127.0.0.0/8"}
    server = bench.stack.enter_context(subjects.service(bench.postgres, environment=allowed))
    with server.client() as client:
        for _ in range(_WEBHOOKS):
            client.post("/v1/webhooks", json={"url": receiver.url}).raise_for_status()
    return server


def report(measured: dict[str, list[dict[str, float]]]) -> str:
    """The ratios of rates, and of the processor time that a worker takes for an ask."""
    lines = ["| what | asks a second, ratio: median [range] | processor time of an ask, ratio |", "|---|---|---|"]
    for what, above, below in RATIOS:
        pairs = list(zip(measured[above], measured[below], strict=True))
        rates, costs = ([one[field] / other[field] for one, other in pairs] for field in ("per_second", "processor_us"))
        lines.append(f"| {what} | {spread(rates)} | {spread(costs)} |")
    return "\n".join(lines)


def main() -> None:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--repetitions", type=int, default=9)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        bench, receiver = KeyBench(stack, Path(folder)), stack.enter_context(Receiver())
        named = {
            "without": bench.asks_with(bench.service(), None),
            "ten webhooks": bench.asks_with(with_webhooks(bench, receiver), None),
            "without, again": bench.asks_with(bench.service(), None),
        }
        began = os.getloadavg()[0]
        measured = measure(named, chosen.seconds, chosen.repetitions)
        told = len(receiver.requests)
    machine = {"python": platform.python_version(), "cores": os.cpu_count(), "load_before": began}
    kept = {"seconds": chosen.seconds, "machine": machine, "messages": told, "measured": measured}
    (RESULTS / "webhooks.json").write_text(json.dumps(kept, indent=1) + "\n")
    print(report(measured))


if __name__ == "__main__":
    main()
