"""A file is that of one moment, whatever happens while it is made, and no snapshot is held for it."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, get_args

import pytest

from service.application.commands.ask import AskMany
from service.application.commands.delete import delete
from service.application.commands.expire import Sweep
from service.application.commands.forget import forget
from service.application.commands.lifecycle import LifecycleMove
from service.application.commands.observations import ChangeObservation
from service.application.commands.prune import prunable, prune
from service.application.commands.tell import ObservationItem, Observe, Tell, Verb
from service.application.reads.export import EXPORTED, Exported, ExportOrder
from service.domain import Expiry, RewardSpec
from service.domain.callers import by_service
from service.engine import snapshots
from service.engine.queue import Command
from service.errors import BestArmError, ExperimentNotFound, ExperimentPruned
from service.storage import forgetting
from service.storage.row_streams import as_of, earlier_states
from service.web.exports.export_file import FileOrder, Piece, file_pieces
from testing.rows import Rows
from testing.workers import Workers

_KEY = "e"
_SECOND = 1_000_000
_VERBS: tuple[Verb, ...] = get_args(Verb)
_STEPS = {"reward", "correction", "void", "expiry", "maturity", "observation_edit", "observation_void"}


class _Life:
    """Traffic to one experiment, as it comes: the same after the same seed."""

    def __init__(self, workers: Workers) -> None:
        self._workers, self._random = workers, random.Random(7)  # noqa: S311 - the same traffic every time
        self._drawn, self._observed = list[str](), list[str]()
        workers.create(_KEY, [("a", 0.0), ("b", 0.0)], reward=RewardSpec("real"), expiry=Expiry(10.0, 0.5))

    def begin(self, count: int) -> None:
        """So many draws, and observations of each kind."""
        number = len(self._drawn)
        units = [f"unit-{unit}" for unit in range(number, number + count)]
        self._drawn += [one.assignment.id for one in self._submit(AskMany(units, by_count=False))]
        names = [f"obs-{name}" for name in range(len(self._observed), len(self._observed) + count)]
        self._observed += names
        self._submit(Observe([ObservationItem("b", 0.25, name) for name in names] + [ObservationItem("a", 1.5)] * count))

    def go_on(self, steps: int) -> None:
        """Some draws and an observation are told of, whatever was told of them before; time passes, and windows close."""
        for _ in range(steps):
            name, reward = self._random.choice(self._drawn), self._random.random()
            verb = self._random.choices(_VERBS, [5, 2, 1])[0]
            self._try(Tell(name, verb, None if verb == "void" else reward))
        observed, void = self._random.choice(self._observed), self._random.random() < 0.3
        self._try(ChangeObservation(observed, void=void, reward=None if void else self._random.random()))
        self._workers.now += _SECOND
        self._submit(Sweep(self._workers.now))

    def correct_last(self, count: int) -> None:
        """So many draws are rewarded, and a moment later have another reward."""
        for verb in _VERBS[:2]:
            for name in self._drawn[-count:]:
                self._try(Tell(name, verb, 0.75 if verb == "correct" else 0.5))
            self._workers.now += _SECOND

    def _submit(self, command: Command[Any]) -> Any:  # noqa: ANN401 - of the command
        return self._workers.submit(_KEY, command)

    def _try(self, command: Command[Any]) -> None:
        with suppress(BestArmError):  # not from what it is now
            self._submit(command)


@pytest.fixture
def life(workers: Workers, monkeypatch: pytest.MonkeyPatch) -> _Life:
    """An experiment to which much has happened, whose files take many snapshots, and whose course is thinned often."""
    monkeypatch.setattr(as_of, "_ROWS_OF_SNAPSHOT", 7)
    monkeypatch.setattr(as_of, "_EVENTS_OF_SNAPSHOT", 40)
    monkeypatch.setattr(earlier_states, "_STEPS_AT_ONCE", 5)
    monkeypatch.setattr(snapshots, "_MOST", 64)
    begun = _Life(workers)
    for _ in range(8):
        begun.begin(10)
        begun.go_on(6)
    begun.correct_last(20)
    return begun


def _pieces(workers: Workers, of: Exported, arm: str | None = None, after: int = 0) -> Iterator[Piece]:
    """The file, piece by piece; between them the workers may do something else."""
    pieces = file_pieces(workers.contexts[0].database.row_source, FileOrder(ExportOrder(_KEY, of, after, arm=arm), "jsonl"))

    async def next_piece() -> Piece | None:
        return await anext(pieces, None)

    while (piece := workers.run(next_piece())) is not None:
        yield piece


class _StoppedError(Exception):
    """A pruning is killed after its first chunk."""


def _stop(_: int) -> None:
    raise _StoppedError


def _file(pieces: Iterator[Piece], meanwhile: Callable[[], None] = lambda: None) -> list[dict[str, Any]]:
    content = b""
    for piece in pieces:
        content += piece.content
        meanwhile()
    return [json.loads(line) for line in content.splitlines()]


def test_every_file_is_that_of_one_moment(workers: Workers, life: _Life) -> None:
    """Steps of every kind, changes of observations and new draws come after each piece, and none of them is in it."""
    for of, arm in [*((of, None) for of in EXPORTED), ("assignments", "a")]:
        whole = _file(_pieces(workers, of, arm))
        assert len(whole) > 2 * 7

        def meanwhile() -> None:
            life.begin(1)
            life.go_on(5)

        version = workers.look(_KEY).version.number
        assert _file(_pieces(workers, of, arm), meanwhile) == whole
        later = {row["kind"] for row in _file(_pieces(workers, "events", after=version))}
        assert later > _STEPS or of != "events", later
        assert _file(_pieces(workers, of, arm)) != whole


@pytest.mark.usefixtures("life")
def test_a_name_that_is_forgotten_meanwhile_changes_no_number(workers: Workers) -> None:
    """An observation is corrected and then forgotten: it is there under its token, with the reward that it had."""
    whole, pieces = _file(_pieces(workers, "observations")), _pieces(workers, "observations")
    begun, place = next(pieces).content, [row["id"] for row in whole].index("obs-79")
    workers.submit(_KEY, ChangeObservation("obs-79", reward=9.0))
    workers.run(forget(workers.contexts[0].database, "obs-79", _KEY))
    found = [json.loads(line) for line in (begun + b"".join(piece.content for piece in pieces)).splitlines()]
    assert found[place]["id"].startswith("forgotten-")
    found[place]["id"] = "obs-79"
    assert found == whole


def test_no_snapshot_is_held_between_two_pieces(workers: Workers, life: _Life) -> None:
    """PostgreSQL may remove what has changed, SQLite may empty its log: nobody is reading, however long a reader takes."""
    for of in EXPORTED:
        pieces = _pieces(workers, of)
        for _ in range(2):
            next(pieces)
            life.go_on(1)
            if workers.url.startswith("sqlite"):
                assert forgetting.is_log_emptied(workers.url)
            else:
                with Rows(workers.url) as rows:
                    held = rows.query(
                        "SELECT state, backend_xmin, backend_xid FROM pg_stat_activity "
                        "WHERE application_name = 'bestarm export' AND datname = current_database()"
                    )
                assert {tuple(row) for row in held} == {("idle", None, None)}  # that of the table before may take its time to end
        assert list(pieces)


@pytest.mark.parametrize("of", ["assignments", "observations", "events"])
def test_what_is_removed_meanwhile_breaks_it_off(workers: Workers, life: _Life, of: Exported) -> None:
    """Pruned or deleted in the middle: no file has an end that lacks some of its rows."""
    life.begin(1)
    workers.submit(_KEY, LifecycleMove("conclude", "a"))
    pieces = _pieces(workers, of)
    assert [next(pieces).rows for _ in range(2)][1]
    database, before = workers.contexts[0].database, workers.now + 1
    (over,) = workers.run(prunable(database, before, [_KEY]))
    with suppress(_StoppedError):
        workers.run(prune(database, over, before, _stop))
    for begun in (pieces, _pieces(workers, of)):  # and none begins while rows are on their way out
        with pytest.raises(ExperimentPruned):
            list(begun)
    (over,) = workers.run(prunable(database, before, [_KEY]))
    assert workers.run(prune(database, over, before, lambda _: None))
    pieces = _pieces(workers, "events")
    assert next(pieces).version
    workers.submit(_KEY, LifecycleMove("archive"))
    workers.run(delete(workers.contexts[0], by_service(_KEY), _KEY))
    with pytest.raises(ExperimentNotFound):
        list(pieces)
