"""An experiment as it was at one version, read in many short snapshots: the file is that of one snapshot, and none is held.

Events up to the version stay as they are. What came later to a row that is read now is undone by the events behind the version,
which say what was there before; they are read up to the very snapshot that the row is from.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from service.errors import ExperimentNotFound, ExperimentPruned
from service.storage.row_streams import export_queries
from service.storage.row_streams.earlier_states import earlier_states

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

    from service.domain import Progress
    from service.storage.row_streams.earlier_states import EarlierState
    from service.storage.row_streams.row_snapshot import Row, RowConnection, RowSnapshot

# What one snapshot reads: some 10 ms. With more an export took no less time, and more memory (measured). An event may hold the
# values of an arm, as they were and as they are.
_ROWS_OF_SNAPSHOT = 2_000
_EVENTS_OF_SNAPSHOT = 500
# So many rows are worded at once.
_AT_ONCE = 1_000


class AsOf:
    """What an experiment was at a version."""

    def __init__(self, connection: RowConnection, progress: Progress) -> None:
        self._connection, self._progress = connection, progress
        self._id, self._version = progress.experiment.id, progress.version

    @property
    def waited(self) -> float:
        """Seconds for which the database was waited for until now."""
        return self._connection.waited

    @asynccontextmanager
    async def _snapshot(self) -> AsyncIterator[tuple[RowSnapshot, int]]:
        """A snapshot in which all rows of then are still there, and its version."""
        async with self._connection.snapshot() as rows:
            experiment, present = self._progress.experiment, await export_queries.present_of(rows, self._id)
            if present is None or present["key"] != experiment.key:
                raise ExperimentNotFound(experiment.key)
            if present["pruned_at"] != experiment.pruned_at:
                raise ExperimentPruned(experiment.key)
            yield rows, present["version"]

    async def assignments(self, draws: range, arm: int | None) -> AsyncIterator[Sequence[Row]]:
        """These draws, all of which there were then."""
        with earlier_states(self._id, self._version) as earlier:
            while draws:
                async with self._snapshot() as (rows, present):
                    if not await earlier.read(rows, present, draws):
                        continue
                    window = _window(draws, arm, _ROWS_OF_SNAPSHOT)
                    found = await export_queries.assignments(rows, self._id, window, arm, _ROWS_OF_SNAPSHOT)
                    passed = _passed(window, found, _ROWS_OF_SNAPSHOT, "draw")
                    undone = earlier.of(passed)
                    dates = await self._dates(rows, undone, found[0]["sequence"]) if undone and found else {}
                for few in _pieces([_assignment_before(row, undone, dates) for row in found] if undone else found):
                    yield few
                draws = range(passed.stop, draws.stop)

    async def _dates(self, rows: RowSnapshot, undone: dict[int, EarlierState], first: int) -> dict[int, int]:
        """When rewards of then came, of draws that were corrected or voided since; the first draw has this sequence number."""
        lost = {draw for draw, state in undone.items() if state.status == "rewarded" and not state.dated}
        return await export_queries.reward_dates(rows, self._id, lost, range(first, self._version + 1)) if lost else {}

    async def observations(self, sequences: range, arm: int | None) -> AsyncIterator[Sequence[Row]]:
        """The observations that came with these sequence numbers."""
        while sequences:
            async with self._snapshot() as (rows, _):
                window = _window(sequences, arm, _ROWS_OF_SNAPSHOT)
                found = await export_queries.observations(rows, self._id, window, arm, _ROWS_OF_SNAPSHOT)
                passed = _passed(window, found, _ROWS_OF_SNAPSHOT, "sequence")
                changed = {row["id"] for row in found if (row["changed"] or 0) > self._version}
                if changed:
                    before = await export_queries.observations_before(rows, self._id, self._version, changed)
                    found = [_observation_before(row, self._version, before) for row in found]
            for few in _pieces(found):
                yield few
            sequences = range(passed.stop, sequences.stop)

    async def events(self, sequences: range, arm: int | None) -> AsyncIterator[Sequence[Row]]:
        """The events of these sequence numbers."""
        while sequences:
            async with self._snapshot() as (rows, _):
                window = _window(sequences, arm, _EVENTS_OF_SNAPSHOT)
                found = await export_queries.events(rows, self._id, window, arm, _EVENTS_OF_SNAPSHOT)
                passed = _passed(window, found, _EVENTS_OF_SNAPSHOT, "sequence")
            for few in _pieces(found):
                yield few
            sequences = range(passed.stop, sequences.stop)


def _window(numbers: range, arm: int | None, most: int) -> range:
    """The numbers that one statement looks at: rows of one arm may be few, and it must not pass all others to find them."""
    return numbers if arm is None else numbers[:most]


def _passed(window: range, found: Sequence[Row], most: int, number: str) -> range:
    """The numbers of a window whose rows were found: all, or up to the last row where no more were to be found."""
    return window if len(found) < most else range(window.start, found[-1][number] + 1)


def _pieces(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    for start in range(0, len(rows), _AT_ONCE):
        yield rows[start : start + _AT_ONCE]


def _assignment_before(row: Row, undone: Mapping[int, EarlierState], dates: Mapping[int, int]) -> Row:
    """An assignment, with what it was where it has gone on."""
    sequence, draw, token, arm, unit, reason, _, _, _, epoch, created_at, rewarded_at, *expiry = row
    if draw not in undone:
        return row
    status, reward, closed, dated = undone[draw]
    if status != "rewarded":
        rewarded_at = None
    elif not dated:
        rewarded_at = dates[draw]
    return (sequence, draw, token, arm, unit, reason, status, reward, closed, epoch, created_at, rewarded_at, *expiry)


def _observation_before(row: Row, version: int, before: Mapping[str, tuple[str, float | None]]) -> Row:
    """An observation, with what it was where it was changed behind this version."""
    sequence, name, arm, _, _, epoch, at, changed = row
    if changed is None or changed <= version:
        return row
    return (sequence, name, arm, *before[name], epoch, at, version)
