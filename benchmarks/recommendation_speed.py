"""What a viewer waits for beside another checkout: the whole recommendation of a version that nobody has seen yet, over HTTP.

    python -m benchmarks.recommendation_speed FOLDER [--turns 5] [--arms 10] [--kind binary]

Both services run on PostgreSQL, a worker each, and know the same: experiments that were created over HTTP, without a control,
with the arms' sums written to the database before the services start, since 30 million rewards would take an hour to send.
Before each look one observation is sent, so that nothing is cached. A look is an answer of 200 in full; what it takes is the
processor time of all processes of the service (not the database's) and the time until the client has it. The cases are those of
`inference_speed_before`. Ratios are taken within a turn, this one over the other, from the medians of its looks. Writes
docs/inference/recommendation_speed.json; with --arms or --kind only the chosen rows are measured, and the others stay.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import numpy as np

from benchmarks import subjects
from benchmarks.checkouts import commit_of
from benchmarks.inference_instances import Floats, Ints
from testing.postgres import Postgres
from testing.server import Server

RESULTS = subjects.HERE.parent / "docs" / "inference" / "recommendation_speed.json"
KINDS = ("binary", "bounded")
CASES = ("close race", "clear winner", "all equal", "unequal counts")
LOOKS = {10: 25, 1000: 6, 10_000: 2}
TURNS = 5
# Of rewards that are not whole numbers: their sums have about as many digits as those of random doubles.
_SHIFT = 53
# A statement has room for so many: an argument of a command may have 128 KiB.
_ROWS_AT_ONCE = 500
# A service that nobody asks anything takes no more processor time than this.
_QUIET_SECONDS, _QUIET_MILLISECONDS = 2.0, 100.0


@dataclass(frozen=True)
class Row:
    """What is measured."""

    arms: int
    kind: str
    case: str

    @property
    def key(self) -> str:
        """Of its experiment."""
        return f"{self.kind}-{self.case.replace(' ', '-')}-{self.arms}"


def counts_and_means(row: Row) -> tuple[Ints, Floats]:
    """The rewards of each arm: how many, and their share of successes."""
    rng = np.random.default_rng(row.arms)
    if row.case in ("close race", "clear winner"):
        counts, means = np.full(row.arms, 20_000), rng.uniform(0.1, 0.5, row.arms)
        means[row.arms // 2] = 0.9 if row.case == "clear winner" else means[row.arms // 2]
        return counts, np.rint(counts * means) / counts
    counts, means = np.full(row.arms, 20_000), np.full(row.arms, 0.1)
    if row.case == "unequal counts":
        counts, means = rng.integers(1_000, 5_001, row.arms), rng.uniform(0.05, 0.1, row.arms)
        means[row.arms // 2] = 0.13
    return counts, rng.binomial(counts, means) / counts


def moments(kind: str, count: int, ones: int) -> str:
    """Count, sum and sum of squares as the database has them, of so many rewards with the mean of so many ones."""
    if kind == "binary":
        return f"{count},'{ones}','{ones}'"
    mean = ones / count
    spread = 0.3 * mean * (1.0 - mean)
    total, squares = ones * 2**_SHIFT + 1, round(count * (mean * mean + spread) * 2**_SHIFT) * 2**_SHIFT + 1
    return f"{count},'{total}/2^{_SHIFT}','{squares}/2^{2 * _SHIFT}'"


def experiment(row: Row) -> dict[str, object]:
    """Its body."""
    reward: dict[str, object] = {"kind": row.kind} | ({"min": 0, "max": 1} if row.kind == "bounded" else {})
    return {"key": row.key, "arms": [{"key": f"a{arm}"} for arm in range(row.arms)], "reward": reward}


def write_sums(postgres: Postgres, database: str, row: Row) -> None:
    """All rewards are matured, half of them were there at the last power of two."""
    values = []
    for place, (count, mean) in enumerate(zip(*(each.tolist() for each in counts_and_means(row)), strict=True)):
        ones = round(count * mean)
        values.append(f"({place},{moments(row.kind, count, ones)},{moments(row.kind, count // 2, ones // 2)})")
    for start in range(0, len(values), _ROWS_AT_ONCE):
        columns = "position, n, total, squares, earlier_n, earlier_total, earlier_squares"
        sums = f"(VALUES {','.join(values[start : start + _ROWS_AT_ONCE])}) AS sums({columns})"
        told = "observations = n, reward_sum = total, reward_squares = squares"
        matured = "matured = n, matured_sum = total, matured_squares = squares"
        earlier = "earlier = earlier_n, earlier_sum = earlier_total, earlier_squares = sums.earlier_squares"
        which = f"experiments.key = '{row.key}' AND arms.experiment_id = experiments.id AND arms.position = sums.position"
        postgres.sql(f"UPDATE arms SET {told}, {matured}, {earlier} FROM {sums}, experiments WHERE {which}", database)
    # As long as its history would be: the service looks by itself at what has grown by a hundredth.
    events = int(counts_and_means(row)[0].sum())
    postgres.sql(f"UPDATE experiments SET version = version + {events} WHERE key = '{row.key}'", database)


@contextmanager
def service(postgres: Postgres, checkout: Path, rows: list[Row]) -> Iterator[Server]:
    """The service of a checkout, which knows these experiments."""
    with subjects.service(postgres, experiments=0, checkout=checkout) as first, first.client() as client:
        for row in rows:
            client.post("/v1/experiments", json=experiment(row)).raise_for_status()
        url, database = first.database_url, subjects.database_of(first)
    # Not while a service runs, which remembers arms without rewards.
    for row in rows:
        write_sums(postgres, database, row)
    python = checkout / ".venv/bin/python"
    program = (python if python.exists() else sys.executable, "-m", "service")
    with Server(url, program=program, cwd=checkout) as running:
        yield running


def processor_milliseconds(server: Server) -> float:
    """What the threads of its processes have used so far, to the nanosecond."""
    used = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(stat.read_text().rpartition(")")[2].split()[2]) == server.process.pid:  # its process group
                used += sum(int(task.read_text().split()[0]) for task in stat.parent.glob("task/*/schedstat"))
        except OSError:
            continue  # it has ended
    return used / 1e6


def wait_until_quiet(server: Server) -> None:
    """Of experiments that it never saw a service looks at each by itself."""
    quiet = False
    while not quiet:
        before = processor_milliseconds(server)
        time.sleep(_QUIET_SECONDS)
        quiet = processor_milliseconds(server) - before < _QUIET_MILLISECONDS


@dataclass
class Side:
    """One checkout's service, and how many observations it was told."""

    server: Server
    client: httpx.Client
    told: int = 0

    def look(self, row: Row) -> tuple[float, float]:
        """Milliseconds of processor time, and of waiting."""
        address = f"/v1/experiments/{row.key}"
        observation = {"arm": f"a{self.told % row.arms}", "reward": 1}
        self.client.post(f"{address}/observations", json={"observations": [observation]}).raise_for_status()
        self.told += 1
        before, began = processor_milliseconds(self.server), time.perf_counter()
        answer = self.client.get(f"{address}/recommendation")
        waited, used = 1e3 * (time.perf_counter() - began), processor_milliseconds(self.server) - before
        if answer.status_code != httpx.codes.OK:
            raise RuntimeError(answer.text)
        return used, waited

    def looks(self, row: Row) -> tuple[float, float]:
        """The medians of a turn."""
        taken = [self.look(row) for _ in range(LOOKS[row.arms])]
        used, waited = zip(*taken, strict=True)
        return statistics.median(used), statistics.median(waited)


def require_equal(ours: Side, theirs: Side, row: Row) -> None:
    """Both must know the same of every arm."""
    seen = []
    for side in (ours, theirs):
        found = side.client.get(f"/v1/experiments/{row.key}/recommendation").json()
        seen.append([(arm["observations"], arm["mean"], arm["interval"] is None) for arm in found["arms"]])
    if seen[0] != seen[1]:
        raise RuntimeError(f"The two services know different things of {row.key}.")


def compare(ours: Side, theirs: Side, row: Row, turns: int) -> dict[str, object]:
    """One row: the ratios of the turns, after one that only warms up."""
    require_equal(ours, theirs, row)
    taken: dict[str, list[tuple[float, float]]] = {"this": [], "other": []}
    for turn in range(turns + 1):
        # Who goes first alternates.
        sides = [("this", ours), ("other", theirs)]
        for name, side in sides if turn % 2 else sides[::-1]:
            taken[name].append(side.looks(row))
    require_equal(ours, theirs, row)
    found: dict[str, object] = {"arms": row.arms, "kind": row.kind, "case": row.case, "turns": turns}
    for place, name in enumerate(("processor", "waited")):
        here, there = ([looks[place] for looks in taken[side][1:]] for side in ("this", "other"))
        ratios = [one / other for one, other in zip(here, there, strict=True)]
        figures = {"median": statistics.median(ratios), "min": min(ratios), "max": max(ratios)}
        figures |= {"milliseconds": statistics.median(here), "milliseconds_of_other": statistics.median(there)}
        found[name] = {figure: round(value, 3) for figure, value in figures.items()}
    return found


def keep(row: Row, found: dict[str, object]) -> None:
    """Write a row down at once, in its place among those that were measured before."""
    kept = {one["key"]: one for one in json.loads(RESULTS.read_text())} if RESULTS.exists() else {}
    kept[row.key] = {"key": row.key, **found}
    order = [Row(arms, kind, case).key for arms in LOOKS for kind in KINDS for case in CASES]
    RESULTS.write_text(json.dumps([kept[key] for key in order if key in kept], indent=1) + "\n")


def main() -> None:
    """All sizes, kinds and cases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="another checkout, with its .venv")
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--arms", type=int, choices=LOOKS, help="only this size")
    parser.add_argument("--kind", choices=KINDS, help="only these rewards")
    chosen = parser.parse_args()
    rows = [
        Row(arms, kind, case)
        for arms in LOOKS
        for kind in KINDS
        for case in CASES
        if chosen.arms in (None, arms) and chosen.kind in (None, kind)
    ]
    folders = {"this": subjects.HERE.parent, "other": chosen.folder.resolve()}
    commits = {side: commit_of(folder) for side, folder in folders.items()}
    with ExitStack() as stack:
        postgres = stack.enter_context(subjects.cluster())
        sides = {}
        for side, folder in folders.items():
            server = stack.enter_context(service(postgres, folder, rows))
            wait_until_quiet(server)
            sides[side] = Side(server, stack.enter_context(server.client()))
        for row in rows:
            found = compare(sides["this"], sides["other"], row, chosen.turns)
            print(found, flush=True)
            keep(row, found | {"commits": commits})


if __name__ == "__main__":
    main()
