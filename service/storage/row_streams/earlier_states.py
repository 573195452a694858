"""What assignments were at a version, of those that went on since: the first later step of each says so.

A step carries the state before it, but not when the reward came that it replaces: that is in the steps up to the version.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from service.storage.row_streams import export_queries
from service.storage.row_streams.scratch_file import scratch_file

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator

    from service.storage.row_streams.row_snapshot import RowSnapshot

_STEPS_AT_ONCE = 20_000
# Without types, so that every double comes back as it was. `dated`: the row still says when its reward came.
_COLUMNS = "draw INTEGER PRIMARY KEY, status, reward, closed, dated"
_KEEP = "INSERT INTO kept VALUES (?, ?, ?, ?, ?) ON CONFLICT (draw) DO UPDATE SET dated = dated AND excluded.dated"


class EarlierState(NamedTuple):
    """What a row said at the version, where it says something else now."""

    status: str
    reward: float | None
    closed: bool
    dated: bool
    """When its reward came has not changed since."""


class EarlierStates:
    """The steps behind a version, as far as they were read."""

    def __init__(self, kept: sqlite3.Connection, experiment_id: int, version: int) -> None:
        self._kept, self._experiment_id, self._read_until = kept, experiment_id, version

    async def read(self, rows: RowSnapshot, present: int, draws: range) -> bool:
        """Read on, a bounded number of steps of these draws; are those up to the present version known now?"""
        end = min(present, self._read_until + _STEPS_AT_ONCE)
        if end > self._read_until:
            found = await export_queries.steps(rows, self._experiment_id, range(self._read_until + 1, end + 1), draws)
            self._kept.execute("BEGIN").close()
            self._kept.executemany(_KEEP, ((draw, *before, kind == "maturity") for _, draw, kind, *before in found)).close()
            self._kept.execute("COMMIT").close()
            self._read_until = end
        return end >= present

    def of(self, draws: range) -> dict[int, EarlierState]:
        """What those of these draws were that went on; they are not asked for again."""
        bounds = draws.start, draws.stop
        found = self._kept.execute("SELECT * FROM kept WHERE draw >= ? AND draw < ?", bounds).fetchall()
        self._kept.execute("DELETE FROM kept WHERE draw >= ? AND draw < ?", bounds).close()
        return {draw: EarlierState(status, reward, bool(closed), bool(dated)) for draw, status, reward, closed, dated in found}


@contextmanager
def earlier_states(experiment_id: int, version: int) -> Iterator[EarlierStates]:
    """Those of an experiment at this version, until the block ends."""
    with scratch_file(_COLUMNS) as kept:
        yield EarlierStates(kept, experiment_id, version)
