"""An experiment that is over gives up its single draws: what was counted stays, for good, and nothing can change it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from service.application.commands import delete, duplicate
from service.application.commands.arms import AddArm
from service.application.commands.ask import Ask, AskMany, note_of
from service.application.commands.delete import Deleter
from service.application.commands.experiments import Described, Patch
from service.application.commands.expire import Sweep
from service.application.commands.idempotency import Once, OnceCommand
from service.application.commands.lifecycle import LifecycleMove
from service.application.commands.observations import ChangeObservation
from service.application.commands.prune import Candidate, candidates, prunable, prune
from service.application.commands.tell import ObservationItem, Observe, RewardItem, Tell, TellMany, TellUnit
from service.application.reads.replay import Replayed, replay
from service.domain import UNAUDITED, Arm, Move
from service.domain.callers import by_service
from service.engine.queue import Command
from service.errors import ExperimentNotFound, ExperimentPruned, IllegalTransition
from service.storage import experiment_copies
from service.storage.queries import stored_assignments
from testing.rows import Rows
from testing.varied_experiment import all_rows, write_varied
from testing.workers import Workers

_KEY = "over"
_ARMS = [("a", 0.0), ("b", 0.0)]
_KIND = experiment_copies.columns_of("events").index("kind")


def pruned(workers: Workers, key: str = _KEY, ended_before: int | None = None) -> int:
    """Prune what ended before this time, or by now; how many rows went."""
    database, before = workers.contexts[0].database, workers.now + 1 if ended_before is None else ended_before
    return sum(
        workers.run(prune(database, one, before, lambda _: None)) for one in workers.run(prunable(database, before, [key]))
    )


def replayed(workers: Workers, key: str = _KEY) -> Replayed:
    """What replay says of it."""
    return workers.run(replay(workers.contexts[1].database, key))


class _Stopped(Exception):  # noqa: N818 - as a kill would be
    """The pruning ends here."""


def test_every_single_draw_goes_and_all_that_was_counted_stays(workers: Workers) -> None:
    """The tables of draws are empty, the events of people, the arms, snapshots and findings as they were; so is the look."""
    write_varied(workers, _KEY)
    workers.submit(_KEY, LifecycleMove("conclude", "a"))
    before, looked = workers.run(all_rows(workers.contexts[0].database, _KEY)), workers.look(_KEY)
    traffic = [row for row in before["events"] if row[_KIND] in UNAUDITED]
    gone = len(traffic) + sum(len(before[name]) for name in ("assignments", "observations", "batches", "replies"))
    [counted] = workers.run(_counted(workers))
    assert sum(counted.rows.values()) == gone
    assert counted.about_bytes > 100 * gone
    assert pruned(workers) == gone
    after = workers.run(all_rows(workers.contexts[0].database, _KEY))
    assert [after[name] for name in ("assignments", "observations", "batches", "replies", "prunings")] == [[]] * 5
    assert all(after[name] == before[name] for name in ("arms", "snapshots", "findings"))
    stayed = [row for row in before["events"] if row[_KIND] not in UNAUDITED]
    assert (after["events"][:-1], after["events"][-1][_KIND]) == (stayed, "pruned")
    again = workers.look(_KEY, 1)
    assert (again.standings, again.verdict, again.best) == (looked.standings, looked.verdict, looked.best)
    checked = replayed(workers)
    assert (checked.events, checked.version, checked.pruning) == (len(stayed) + 1, len(before["events"]) + 1, False)
    assert f"{len(traffic):,} events are gone" in checked.sentence()


async def _counted(workers: Workers) -> list[Candidate]:
    database = workers.contexts[0].database
    return await candidates(database, await prunable(database, workers.now + 1, None))


def test_what_was_pruned_can_change_no_more(workers: Workers) -> None:
    """Rewards, corrections, voids, observations and a reopening are refused by every worker, and leave no trace."""
    workers.create(_KEY, _ARMS, sticky=True)
    drawn = workers.submit(_KEY, Ask("ann"), 1).assignment
    assert drawn is not None
    workers.submit(_KEY, Observe([ObservationItem("a", 1.0, "one")]))
    workers.submit(_KEY, LifecycleMove("conclude", "b"))
    workers.submit(_KEY, Tell(drawn.id, "reward", 1.0), 1)
    pruned(workers)
    version = workers.look(_KEY).version
    refused: list[Command[Any]] = [
        *(Tell(drawn.id, "reward", reward) for reward in (0.0, 1.0)),
        Tell(drawn.id, "correct", 0.0),
        Tell(drawn.id, "void"),
        TellUnit("ann", "reward", 1.0),
        TellMany([RewardItem(assignment=drawn.id, reward=1.0)]),
        Observe([ObservationItem("a", 1.0, "one")]),
        Observe([ObservationItem("a", 0.0, None)]),
        ChangeObservation("one", void=True),
        LifecycleMove("reopen"),
    ]
    for worker in (1, 0):
        for command in refused:
            with pytest.raises(ExperimentPruned, match="counts can change no more"):
                workers.submit(_KEY, command, worker)
    assert workers.look(_KEY).version == version


def test_it_goes_on_to_serve_its_arm_and_to_be_described(workers: Workers) -> None:
    """A concluded one answers asks, sticky units too; it can be renamed, duplicated, archived and deleted; replay stays clean."""
    workers.create(_KEY, _ARMS, sticky=True)
    workers.submit(_KEY, Ask("ann"))
    workers.submit(_KEY, LifecycleMove("conclude", "b"))
    pruned(workers)
    for worker in (1, 0):
        served = workers.submit(_KEY, Ask("ann", "the key of an ask"), worker)
        assert (served.arm.key, served.reason, served.assignment, served.replayed) == ("b", "concluded", None, worker == 0)
    workers.submit(_KEY, Patch({"name": "An old one"}), 1)
    workers.submit(_KEY, AddArm(Arm(0, "c", "c", None)))
    once: Once[Described] = Once("duplicate", None, "", creates=True, render=lambda _: b"")
    workers.run(duplicate.duplicate(workers.contexts[1], by_service(_KEY), "copy", once))
    workers.submit("copy", LifecycleMove("start"))
    assert workers.submit("copy", Ask("ann")).assignment is not None
    workers.submit(_KEY, LifecycleMove("archive"), 1)
    assert replayed(workers).events == 6
    assert workers.replay("copy") == 3
    workers.run(delete.delete(workers.contexts[0], by_service(_KEY), _KEY))
    workers.run(Deleter(workers.contexts[1]).remove_all())
    with Rows(workers.url) as rows:
        assert rows.query("SELECT count(*) FROM experiments") == [(1,)]


def test_only_what_ended_long_ago_is_pruned(workers: Workers) -> None:
    """By when it was last concluded: not what runs or is paused, not what was reopened, or concluded again later."""
    hour = 3_600_000_000
    lives: dict[str, list[Move]] = {
        "running": [],
        "paused": ["pause"],
        "concluded": ["conclude"],
        "archived": ["conclude", "archive"],
        "reopened": ["conclude", "reopen"],
    }
    for key, moves in lives.items():
        workers.create(key, _ARMS)
        workers.submit(key, Ask(None))
        for move in moves:
            workers.submit(key, LifecycleMove(move, "a" if move == "conclude" else None))
    ended = workers.now
    workers.create("again", _ARMS)
    workers.submit("again", LifecycleMove("conclude", "a"))
    workers.submit("again", LifecycleMove("reopen"))
    workers.now += 10 * hour
    workers.submit("again", LifecycleMove("conclude", "b"))
    workers.submit("concluded", Patch({"name": "It was renamed long after its end"}))
    database = workers.contexts[0].database
    found = {before: [one.key for one in workers.run(prunable(database, before, None))] for before in (ended, ended + 1)}
    assert found == {ended: [], ended + 1: ["concluded", "archived"]}
    assert [one.key for one in workers.run(prunable(database, workers.now + 1, None))] == ["concluded", "archived", "again"]
    for key, said in (("running", "is running"), ("reopened", "is paused"), ("again", "ended later")):
        with pytest.raises(IllegalTransition, match=said):
            workers.run(prunable(database, ended + 1, [key]))
    with pytest.raises(ExperimentNotFound):
        workers.run(prunable(database, ended + 1, ["none"]))
    pruned(workers, "archived")
    with pytest.raises(ExperimentPruned):
        pruned(workers, "archived")


def test_what_is_reopened_at_the_last_moment_is_left_alone(workers: Workers) -> None:
    """Found to be over, and reopened before its turn came: nothing is marked, and nothing goes."""
    workers.create(_KEY, _ARMS)
    workers.submit(_KEY, Ask(None))
    workers.submit(_KEY, LifecycleMove("conclude", "a"))
    database = workers.contexts[0].database
    [found] = workers.run(prunable(database, workers.now + 1, None))
    workers.submit(_KEY, LifecycleMove("reopen"), 1)
    assert workers.run(prune(database, found, workers.now + 1, lambda _: None)) == 0
    assert workers.replay(_KEY) == 4


def test_an_interrupted_pruning_goes_on_where_it_stopped(workers: Workers) -> None:
    """Stopped after each chunk and begun anew: each row goes once; replay says that it is under way, until it is done."""
    workers.create(_KEY, _ARMS)
    drawn = workers.submit(_KEY, AskMany([None] * 1_000, by_count=True))
    workers.submit(_KEY, TellMany([RewardItem(assignment=one.assignment.id, reward=1.0) for one in drawn if one.assignment]))
    workers.submit(_KEY, LifecycleMove("conclude", "a"))
    database, removed, times = workers.contexts[0].database, 0, 0

    def stop(rows: int) -> None:
        nonlocal removed
        removed += rows
        raise _Stopped

    while found := workers.run(prunable(database, workers.now + 1, None)):
        times += 1
        with pytest.raises(_Stopped):
            workers.run(prune(database, found[0], workers.now + 1, stop))
        checked = replayed(workers)
        assert checked.pruning == bool(workers.run(prunable(database, workers.now + 1, None)))
        assert ("run `bestarm prune` again" in checked.sentence()) == checked.pruning
    assert (removed, times > 5) == (3_000, True)
    with Rows(workers.url) as rows:
        assert rows.query("SELECT kind, count(*) FROM events GROUP BY kind ORDER BY kind") == [
            *(("created", 1), ("lifecycle", 1), ("pruned", 1))
        ]
        assert rows.query("SELECT kind, details FROM instance_log") == [
            ("experiment_pruned", f'{{"experiment":"{_KEY}","rows":3000}}')
        ]


def test_two_may_prune_at_the_same_time(workers: Workers) -> None:
    """Each row goes once, whoever removes it."""
    workers.create(_KEY, _ARMS)
    workers.submit(_KEY, AskMany([None] * 2_000, by_count=True))
    workers.submit(_KEY, LifecycleMove("conclude", "a"))

    async def together() -> int:
        first, second = (context.database for context in workers.contexts)
        [found] = await prunable(first, workers.now + 1, None)
        marked = asyncio.Event()
        begun = asyncio.create_task(prune(first, found, workers.now + 1, lambda _: marked.set()))
        await marked.wait()
        others = [
            prune(second, again, workers.now + 1, lambda _: None) for again in await prunable(second, workers.now + 1, None)
        ]
        return sum(await asyncio.gather(begun, *others))

    removed = workers.run(together())
    while left := workers.run(prunable(workers.contexts[0].database, workers.now + 1, None)):
        removed += workers.run(prune(workers.contexts[0].database, left[0], workers.now + 1, lambda _: None))
    assert removed == 4_000
    assert replayed(workers).pruning is False


def test_what_was_due_stays_as_it_was(workers: Workers) -> None:
    """A silent draw whose window closes after the pruning is marked is not swept any more."""
    write_varied(workers, _KEY)
    workers.submit(_KEY, LifecycleMove("conclude", "a"))
    database = workers.contexts[0].database
    [found] = workers.run(prunable(database, workers.now + 1, None))

    def stop(_rows: int) -> None:
        raise _Stopped

    with pytest.raises(_Stopped):
        workers.run(prune(database, found, workers.now + 1, stop))
    workers.now += 10**12

    async def due() -> object:
        async with database.reading() as connection:
            return await stored_assignments.experiments_with_due(connection, workers.now)

    assert workers.run(due()) == []
    assert workers.submit(_KEY, Sweep(workers.now)) == 0
    pruned(workers)
    assert replayed(workers).pruning is False


def test_a_retry_of_what_was_pruned_is_answered_as_any_ask_is_now(workers: Workers) -> None:
    """The first answers are gone with the draws that they name: the concluded arm, and no failure."""
    workers.create(_KEY, _ARMS)

    def ask() -> OnceCommand[Any]:
        once: Once[Any] = Once("assignments/batch", "k", "h", creates=True, render=lambda _: b"[]", note=note_of)
        return OnceCommand(once, AskMany([None] * 3, by_count=True))

    workers.submit(_KEY, ask())
    workers.submit(_KEY, Ask(None, "single"))
    assert workers.submit(_KEY, ask()).replayed
    workers.submit(_KEY, LifecycleMove("conclude", "b"))
    pruned(workers)
    for worker in (0, 1):
        assert workers.submit(_KEY, Ask(None, "single"), worker).reason == "concluded"
    assert not workers.submit(_KEY, ask(), 1).replayed
