"""What keys cost: asks with a key against asks on an open service, with few keys and many, and beside 1,000 wrong ones a second.

    python -m benchmarks.keys [--seconds S] [--repetitions R]

All services run side by side on one PostgreSQL and are loaded in turn; beside the rate stands the processor time that the worker
takes for an ask, which a busy machine changes less. Two open services are the floor: what their ratio is away from 1 is the
machine's doing. Beside asks with wrong keys stand asks beside as many requests with a good one to an experiment that is not
there: what a refused request takes of the processor anyhow is not the price of its being wrong.
Writes benchmarks/results/keys.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import tempfile
import threading
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

from benchmarks import subjects
from benchmarks.hot_path import HOT, RESULTS, Bench, Cell, spread
from benchmarks.load import Seen, wrk
from testing.server import ADMIN_KEY, Server

_MANY_KEYS = 10_000
# Others that send wrong keys: each waits for its answer, up to a quarter of a second, and pauses, 1,000 a second in all.
_OTHERS = 320
_PAUSE_AFTER_WRONG = 260
_PAUSE_AFTER_NOWHERE = 600
# In the database, and nobody has their secrets.
_MADE_UP_KEYS = (
    (
        "INSERT INTO api_keys (id, kind, prefix, digest, label, scopes, created_at, change)"
        " SELECT 'key_' || substr(md5('id' || i), 1, 20), 'secret', 'ba_' || substr(md5('prefix' || i), 1, 12),"
        " sha256(i::text::bytea), 'made up ' || i, '[\"assign\"]', 0, i FROM generate_series(1, {}) i"
    ),
    "UPDATE api_key_changes SET number = {}",
)
# (what, numerator, denominator, wanted): a ratio of asks a second within one repetition.
RATIOS = (
    ("the floor: one open service against another", "open, again", "open", None),
    ("asks with a key against an open service", "one key", "open", 0.95),
    ("asks with one of 10,000 keys against one of two", "10,000 keys", "one key", 0.95),
    ("asks beside 1,000 wrong keys a second against asks alone", "beside wrong keys", "one key", 0.9),
    ("asks beside 1,000 requests a second to nowhere, for comparison", "beside requests to nowhere", "one key", None),
    ("asks with a rate limit that is never reached", "with a rate limit", "one key", None),
    ("asks with an access log", "with an access log", "one key", None),
)


class KeyBench(Bench):
    """Services with keys, beside those without."""

    def keyed(self, *, more_keys: int = 0, **environment: str) -> tuple[Server, str]:
        """A service with an administrator's key, and another key that may ask."""
        server = self.stack.enter_context(subjects.service(self.postgres, key=ADMIN_KEY, environment=environment))
        if more_keys:
            for statement in _MADE_UP_KEYS:
                self.postgres.sql(statement.format(more_keys), subjects.database_of(server))
        with server.client() as client:
            made = client.post("/v1/keys", json={"label": "asks", "scopes": ["assign"]})
        return server, made.raise_for_status().json()["secret"]

    def asks_with(self, server: Server, secret: str | None) -> Cell:
        """Asks with this key, or without any."""

        def run(seconds: float) -> dict[str, float]:
            arguments = ("1", HOT, self.fresh(), "0", *(() if secret is None else (secret,)))
            before = _processor_seconds(server)
            seen = wrk(server.url, "ask.lua", *arguments, connections=64, seconds=seconds)
            return asdict(seen) | {"processor_us": (_processor_seconds(server) - before) / seen.requests * 1e6}

        return run

    def beside(self, asks: Cell, server: Server, path: str, key: str, longest_pause: int) -> Cell:
        """These asks while others send requests that are refused."""

        def run(seconds: float) -> dict[str, float]:
            seen: list[Seen] = []

            def send() -> None:
                arguments = (path, str(longest_pause), key)
                seen.append(wrk(server.url, "wrong_keys.lua", *arguments, connections=_OTHERS, seconds=seconds))

            others = threading.Thread(target=send)
            others.start()
            measured = asks(seconds)
            others.join()
            return measured | {"others_per_second": seen[0].per_second, "others_refused": float(seen[0].refused)}

        return run


def _processor_seconds(server: Server) -> float:
    """What its one worker has taken so far."""
    fields = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cells(bench: KeyBench) -> dict[str, Cell]:
    """All that is compared."""
    open_one, open_two = bench.service(), bench.service()
    few, secret = bench.keyed()
    many, secret_of_many = bench.keyed(more_keys=_MANY_KEYS)
    limited, secret_of_limited = bench.keyed(BESTARM_RATE_LIMIT="1000000", BESTARM_RATE_BURST="1000000")
    logged, secret_of_logged = bench.keyed(BESTARM_ACCESS_LOG="1")
    asks = bench.asks_with(few, secret)
    return {
        "open": bench.asks_with(open_one, None),
        "one key": asks,
        "open, again": bench.asks_with(open_two, None),
        "10,000 keys": bench.asks_with(many, secret_of_many),
        "beside wrong keys": bench.beside(asks, few, f"{HOT}0/assignments", "wrong", _PAUSE_AFTER_WRONG),
        "beside requests to nowhere": bench.beside(asks, few, f"{HOT}none/assignments", secret, _PAUSE_AFTER_NOWHERE),
        "with a rate limit": bench.asks_with(limited, secret_of_limited),
        "with an access log": bench.asks_with(logged, secret_of_logged),
    }


def measure(named: dict[str, Cell], seconds: float, repetitions: int) -> dict[str, list[dict[str, float]]]:
    """Alternate over the cells, every other time in the opposite order."""
    measured: dict[str, list[dict[str, float]]] = {name: [] for name in named}
    for repetition in range(repetitions):
        for name in list(named)[:: 1 if repetition % 2 == 0 else -1]:
            seen = named[name](seconds)
            measured[name].append(seen)
            beside = f"  beside {seen['others_per_second']:,.0f}/s" if "others_per_second" in seen else ""
            print(f"{repetition + 1}/{repetitions} {name:30s} {seen['per_second']:10,.0f}/s{beside}", flush=True)
    return measured


def report(measured: dict[str, list[dict[str, float]]]) -> str:
    """The ratios and what is wanted of them."""
    lines = ["| what | ratio: median [range] | wanted | | processor time of an ask, ratio |", "|---|---|---|---|---|"]
    for what, above, below, wanted in RATIOS:
        values = [one["per_second"] / other["per_second"] for one, other in zip(measured[above], measured[below], strict=True)]
        met = "" if wanted is None else "met" if statistics.median(values) >= wanted else "**missed**"
        goal = "reported" if wanted is None else f"at least {wanted:g}"
        cost = [one["processor_us"] / other["processor_us"] for one, other in zip(measured[above], measured[below], strict=True)]
        lines.append(f"| {what} | {spread(values)} | {goal} | {met} | {spread(cost)} |")
    return "\n".join(lines)


def main() -> None:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--repetitions", type=int, default=7)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        bench = KeyBench(stack, Path(folder))
        named = cells(bench)
        began = os.getloadavg()[0]
        measured = measure(named, chosen.seconds, chosen.repetitions)
    machine = {"python": platform.python_version(), "cores": os.cpu_count(), "load_before": began}
    kept = {"seconds": chosen.seconds, "repetitions": chosen.repetitions, "machine": machine, "measured": measured}
    (RESULTS / "keys.json").write_text(json.dumps(kept, indent=1) + "\n")
    print(report(measured))


if __name__ == "__main__":
    main()
