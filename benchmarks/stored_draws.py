"""Databases with very many draws in them, made by the service's own engine: every row and sum is as traffic leaves it."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from benchmarks.subjects import DURABLE
from service.application.commands.ask import Ask, AskMany
from service.application.commands.lifecycle import LifecycleMove
from service.application.commands.tell import RewardItem, Tell, TellMany
from testing.databases import migrate_now
from testing.postgres import Postgres
from testing.workers import Workers

ENGINES = ("sqlite", "postgresql")
_AT_ONCE = 10_000
_ARMS = [(f"a{number}", 0.0) for number in range(10)]
_numbers = count(1)


class Place:
    """Where databases of an engine are made: files in a folder, or a cluster with durable commits."""

    def __init__(self, engine: str, folder: Path, postgres: Postgres | None) -> None:
        self.engine, self._folder, self.postgres = engine, folder, postgres

    def new(self) -> str:
        """An empty database; its URL."""
        name = f"kept_{next(_numbers)}"
        if self.postgres is not None:
            self.postgres.sql(f"CREATE DATABASE {name}")
        url = f"sqlite:///{self._folder / name}.db" if self.postgres is None else self.postgres.url(name)
        migrate_now(url)
        return url


@contextmanager
def place(engine: str) -> Iterator[Place]:
    """Until the block ends."""
    with tempfile.TemporaryDirectory() as folder:
        if engine == "sqlite":
            yield Place(engine, Path(folder), None)
        else:
            with Postgres(**DURABLE) as cluster:
                yield Place(engine, Path(folder), cluster)


def write_draws(url: str, key: str, draws: int, *, units: bool = True, concluded: bool = True) -> None:
    """An experiment of ten arms with so many draws, each told; asked and told in batches, the last hundred one by one."""
    workers, began = Workers(url, count=1), time.monotonic()
    workers.now = 0  # times never run backwards: all of it happens when it is created
    workers.create(key, _ARMS)
    for start in range(0, draws - 100, _AT_ONCE):
        number = min(_AT_ONCE, draws - 100 - start)
        names = [f"user-{start + one}" if units else None for one in range(number)]
        answers = workers.submit(key, AskMany(names, by_count=not units))
        told = [
            RewardItem(assignment=one.assignment.id, reward=float(one.assignment.draw % 7 == 0))
            for one in answers
            if one.assignment
        ]
        workers.submit(key, TellMany(told))
    for one in range(min(100, draws)):
        drawn = workers.submit(key, Ask(f"last-{one}" if units else None)).assignment
        if drawn is not None:
            workers.submit(key, Tell(drawn.id, "reward", 1.0))
    if concluded:
        workers.submit(key, LifecycleMove("conclude", "a0"))
    workers.close()
    print(f"{key}: {draws:,} draws in {time.monotonic() - began:.0f} s", flush=True)
