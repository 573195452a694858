"""A unit that is forgotten is named nowhere any more, and counts as before."""

from __future__ import annotations

import json
import re
import zlib
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.engine import make_url

from service.application.commands import ask
from service.application.commands.ask import Ask, AskMany
from service.application.commands.forget import Forgotten, forget
from service.application.commands.idempotency import NOTE, Once, OnceCommand
from service.application.commands.lifecycle import LifecycleMove
from service.application.commands.observations import ChangeObservation
from service.application.commands.prune import prunable, prune
from service.application.commands.tell import ObservationItem, Observe, RewardItem, Tell, TellMany, TellUnit
from service.application.copies.dump import dump
from service.application.copies.dump_file import DumpFile
from service.application.copies.load import LoadRequest, load
from service.command_line.experiment_commands import check_settings
from service.domain.limits import LONGEST_IDEMPOTENCY_KEY
from service.engine.queue import Command
from service.errors import ExperimentNotFound, IdempotencyKeyReused, UnitNotFound
from service.storage import forgetting
from service.storage.database import Database
from service.web.api.views import encode_answers, encode_results
from testing.rows import Rows
from testing.varied_experiment import all_rows, write_varied
from testing.workers import Workers

_KEY = "with-people"
_NAME = "zoë.unique@example.com"
_ARMS = [("a", 0.0), ("b", 0.0)]


def forgotten(workers: Workers, unit: str = _NAME, key: str | None = None) -> Forgotten:
    """Forget it as the command does: past the workers, on a database connection of its own."""

    async def run() -> Forgotten:
        database = Database(workers.url)
        try:
            return await forget(database, unit, key)
        finally:
            await database.close()

    return workers.run(run())


def places_of(workers: Workers, name: str, key: str = _KEY) -> list[str]:
    """The tables in which some text has the name in it."""
    found = []
    for table, rows in workers.run(all_rows(workers.contexts[0].database, key)).items():
        texts = [str(value) for row in rows for value in row if not isinstance(value, bytes)]
        packed = [value for row in rows for value in row if isinstance(value, bytes)]
        texts += [value.decode() if value.startswith(NOTE) else zlib.decompress(value).decode() for value in packed]
        if any(name in text for text in texts):
            found.append(table)
    return found


def batch(units: list[str], key: str) -> OnceCommand[Any]:
    """Asks for these units, with an idempotency key."""
    once: Once[Any] = Once("assignments/batch", key, key, creates=ask.creates, render=encode_answers, note=ask.note_of)
    return OnceCommand(once, AskMany(units, by_count=False))


def told(items: list[RewardItem], key: str) -> OnceCommand[Any]:
    """Rewards, with an idempotency key."""
    return OnceCommand(Once("rewards", key, key, creates=False, render=encode_results), TellMany(items))


def test_the_name_is_nowhere_and_every_count_is_as_it_was(workers: Workers) -> None:
    """Of draws, their keys, stored replies and observations it is gone; arms, states and rewards are equal, replay is clean."""
    write_varied(workers, _KEY, "simple_tracking", sticky=True)
    drawn = workers.submit(_KEY, Ask(_NAME, f"key of {_NAME}")).assignment
    assert drawn is not None
    workers.submit(_KEY, batch([_NAME, "somebody-else"], "sticky-batch"))
    workers.submit(_KEY, batch(["new-1", "new-2"], "drawn-batch"))
    workers.submit(_KEY, told([RewardItem(unit=_NAME, reward=2.0), RewardItem(unit="early-1", reward=1.0)], "by-unit"))
    workers.submit(_KEY, Observe([ObservationItem("a", 1.0, _NAME)]))
    workers.submit(_KEY, ChangeObservation(_NAME, reward=3.0))
    assert places_of(workers, _NAME) == ["assignments", "events", "replies", "observations"]
    before = workers.run(all_rows(workers.contexts[0].database, _KEY))
    done = forgotten(workers)
    assert done.experiments == {_KEY: 1}
    assert done.replies >= 3
    after = workers.run(all_rows(workers.contexts[0].database, _KEY))
    assert places_of(workers, _NAME) == []
    assert [len(rows) for rows in after.values()] == [len(rows) + (name == "events") for name, rows in before.items()]
    assert after["arms"] == before["arms"]
    changed = [(old, new) for old, new in zip(before["assignments"], after["assignments"], strict=True) if old != new]
    assert [(old[4], old[:4] + old[5:15] == new[:4] + new[5:15]) for old, new in changed] == [(_NAME, True)]
    token = changed[0][1][4]
    assert re.fullmatch(r"forgotten-[0-9a-f]{24}", token)
    assert places_of(workers, token) == ["assignments", "events", "observations"]
    assert workers.replay(_KEY) == len(before["events"]) + 1


def test_it_is_audited_without_the_name(workers: Workers) -> None:
    """The event says how many assignments and observations it was."""
    workers.create(_KEY, _ARMS)
    for _ in range(3):
        workers.submit(_KEY, Ask(_NAME))
    forgotten(workers)
    with Rows(workers.url) as rows:
        [(details,)] = rows.query("SELECT details FROM events WHERE kind = 'forgotten'")
    assert json.loads(details) == {"assignments": 3, "observations": 0}


def test_workers_that_remember_the_unit_answer_with_the_token(workers: Workers) -> None:
    """Each worker drew for it a moment ago and has that in memory: neither answers with the name, nor writes it again."""
    workers.create(_KEY, _ARMS)
    drawn = [workers.submit(_KEY, Ask(_NAME), worker).assignment for worker in (0, 1, 1, 0)]
    forgotten(workers)
    for worker, assignment in zip((1, 0, 1, 0), drawn, strict=True):
        assert assignment is not None
        answer = workers.submit(_KEY, Tell(assignment.id, "reward", 1.0), worker)
        again = workers.submit(_KEY, Tell(assignment.id, "reward", 1.0), worker)
        assert (answer.assignment.unit or "").startswith("forgotten-")
        assert again.assignment.unit == answer.assignment.unit
    assert places_of(workers, _NAME) == []
    assert workers.replay(_KEY) == 1 + 4 + 1 + 4


def test_a_sticky_unit_that_comes_again_is_somebody_new(workers: Workers) -> None:
    """No reward finds it by its name; it gets a new draw, and keeps that one."""
    workers.create(_KEY, _ARMS, sticky=True)
    first = workers.submit(_KEY, Ask(_NAME)).assignment
    forgotten(workers)
    for worker in (0, 1):
        with pytest.raises(UnitNotFound):
            workers.submit(_KEY, TellUnit(_NAME, "reward", 1.0), worker)
    second = workers.submit(_KEY, Ask(_NAME), 1)
    third = workers.submit(_KEY, Ask(_NAME), 0)
    assert first is not None
    assert second.assignment is not None
    assert (second.created, second.assignment.draw, third.reason) == (True, first.draw + 1, "sticky")
    assert third.assignment == second.assignment
    assert forgotten(workers).experiments == {_KEY: 1}
    with Rows(workers.url) as rows:
        assert rows.query("SELECT count(DISTINCT unit), count(*) FROM assignments WHERE unit LIKE 'forgotten-%'") == [(2, 2)]


@pytest.mark.parametrize("sticky", [False, True])
def test_no_retry_takes_effect_twice(workers: Workers, *, sticky: bool) -> None:
    """Requests that named the unit and are sent again with their keys are refused, not repeated; those of others are answered."""
    workers.create(_KEY, _ARMS, sticky=sticky)
    workers.submit(_KEY, Ask(_NAME, "one"))
    workers.submit(_KEY, Ask("other", "two"))
    workers.submit(_KEY, batch(["x", _NAME, "y"], "three"))
    workers.submit(_KEY, batch(["v", "w"], "four"))
    forgotten(workers)
    version = workers.look(_KEY).version
    for worker in (0, 1):
        for command in (Ask(_NAME, "one"), batch(["x", _NAME, "y"], "three")):
            with pytest.raises(IdempotencyKeyReused):
                workers.submit(_KEY, command, worker)
        assert workers.submit(_KEY, Ask("other", "two"), worker).replayed
        assert workers.submit(_KEY, batch(["v", "w"], "four"), worker).replayed
    assert workers.look(_KEY).version == version


def test_a_retry_whose_key_has_the_name_in_it_is_a_new_request(workers: Workers) -> None:
    """The key is the name's last trace and goes with it, so nobody can know that the request was there before."""
    workers.create(_KEY, _ARMS)
    asks: list[Command[Any]] = [Ask(_NAME, f"ask-{_NAME}"), batch([_NAME, "x"], f"batch-{_NAME}")]
    for command in asks:
        workers.submit(_KEY, command)
    forgotten(workers)
    assert places_of(workers, _NAME) == []
    for worker, command in enumerate(asks):
        workers.submit(_KEY, command, worker)
    assert workers.look(_KEY).progress.draws == 6
    assert workers.replay(_KEY)


def test_keys_stay_as_long_as_keys_may_be(workers: Workers, tmp_path: Path) -> None:
    """A unit of one letter that stands many times in its keys: they are others, each of its own, and the experiment is loaded."""
    workers.create(_KEY, _ARMS)
    keys = ["a" * LONGEST_IDEMPOTENCY_KEY, f"b{'a' * 40}", "0a", "bcd"]
    for key in keys:
        workers.submit(_KEY, Ask("a", key))
    forgotten(workers, "a")
    database, file = workers.contexts[0].database, tmp_path / "dump"
    with Rows(workers.url) as rows:
        found = rows.query("SELECT unit, idempotency_key FROM assignments ORDER BY draw")
    token = found[0][0]
    assert [key for _, key in found] == [f"{token}-1", f"{token}-2", f"0{token}", "bcd"]
    with file.open("wb") as stream:
        workers.run(dump(database, _KEY, stream, lambda *_: None))
    assert workers.run(load(database, DumpFile(file), LoadRequest(check_settings, "again"))).key == "again"


def test_an_interrupted_one_goes_on_with_the_same_token(workers: Workers) -> None:
    """A unit of many draws, half of which were replaced when it stopped: at the end all have one token."""
    workers.create(_KEY, _ARMS)
    workers.submit(_KEY, AskMany([_NAME] * 900, by_count=False))
    database = workers.contexts[0].database

    async def begin() -> None:
        async with database.writing() as connection:
            [named] = await forgetting.experiments_with(connection, _NAME, None)
            draws = await forgetting.draws_of(connection, named)
            await forgetting.replace_draws(connection, named, forgetting.token_for(named, draws), list(draws)[400:])

    workers.run(begin())
    assert forgotten(workers).experiments == {_KEY: 900}
    with Rows(workers.url) as rows:
        assert rows.query("SELECT count(DISTINCT unit), count(*) FROM assignments") == [(1, 900)]
    assert workers.replay(_KEY) == 902


def test_a_correction_that_outlived_its_observation_loses_the_name(workers: Workers) -> None:
    """Pruned, the observation is gone and the audit log has its correction: the name goes there, too, quotation marks and all."""
    name = 'o"brien \\ 100%_'
    workers.create(_KEY, _ARMS)
    workers.submit(_KEY, Observe([ObservationItem("a", 1.0, name), ObservationItem("a", 1.0, 'o"brien')]))
    for observed in (name, 'o"brien'):
        workers.submit(_KEY, ChangeObservation(observed, reward=0.0))
    workers.submit(_KEY, LifecycleMove("conclude", "a"))
    database = workers.contexts[0].database
    [found] = workers.run(prunable(database, workers.now + 1, None))
    workers.run(prune(database, found, workers.now + 1, lambda _: None))
    assert forgotten(workers, name).experiments == {_KEY: 0}
    with Rows(workers.url) as rows:
        told = rows.query("SELECT details FROM events WHERE kind = 'observation_edit' ORDER BY sequence")
    names = [json.loads(details)["observation"] for (details,) in told]
    assert (names[0].startswith("forgotten-"), names[1]) == (True, 'o"brien')
    assert workers.replay(_KEY) == 6


def test_in_one_experiment_or_in_all(workers: Workers) -> None:
    """Running, concluded or archived; each has a token of its own, so that nobody can tell that it was the same unit."""
    for key in ("one", "two", "three"):
        workers.create(key, _ARMS)
        workers.submit(key, Ask(_NAME))
        workers.submit(key, Ask("other"))
    workers.submit("two", LifecycleMove("conclude", "a"))
    workers.submit("three", LifecycleMove("conclude", "a"))
    workers.submit("three", LifecycleMove("archive"))
    assert forgotten(workers, key="one").experiments == {"one": 1}
    assert (places_of(workers, _NAME, "one"), places_of(workers, _NAME, "two")) == ([], ["assignments"])
    assert forgotten(workers).experiments == {"two": 1, "three": 1}
    with Rows(workers.url) as rows:
        assert rows.query("SELECT count(DISTINCT unit) FROM assignments") == [(4,)]
    assert [workers.replay(key) for key in ("one", "two", "three")] == [4, 5, 6]
    assert forgotten(workers) == Forgotten({}, 0, log_emptied=True)
    with pytest.raises(ExperimentNotFound):
        forgotten(workers, key="none")


def test_a_unit_that_is_part_of_other_names_touches_none_of_them(workers: Workers) -> None:
    """The unit `1` is forgotten; units, keys and answers in which a 1 stands stay as they are."""
    workers.create(_KEY, _ARMS, sticky=True)
    for unit in ("1", "11", "unit-1"):
        workers.submit(_KEY, Ask(unit, f"key-1-of-{unit}"))
    workers.submit(_KEY, batch(["21", "31"], "batch-1"))
    forgotten(workers, "1")
    assert workers.submit(_KEY, Ask("11", "key-1-of-11")).replayed
    assert workers.submit(_KEY, Ask("unit-1", "key-1-of-unit-1")).replayed
    assert workers.submit(_KEY, batch(["21", "31"], "batch-1")).replayed
    with Rows(workers.url) as rows:
        units = [unit for (unit,) in rows.query("SELECT unit FROM assignments ORDER BY draw")]
    assert units[1:] == ["11", "unit-1", "21", "31"]


def test_nothing_of_it_is_left_in_the_file_of_an_embedded_database(workers: Workers) -> None:
    """Not among the pages that are free again, nor in the write-ahead log, while workers have it open."""
    parsed = make_url(workers.url)
    workers.create(_KEY, _ARMS, sticky=True)
    for number in range(60):
        workers.submit(_KEY, batch([_NAME, *(f"{_NAME}-{number}-{other}" for other in range(20))], f"b-{number}"))
    if parsed.get_backend_name() != "sqlite":
        assert forgotten(workers).log_emptied
        return
    files = [Path(f"{parsed.database}{suffix}") for suffix in ("", "-wal")]
    assert any(_alone(file) for file in files)
    assert forgotten(workers).log_emptied
    assert [_alone(file) for file in files] == [0, 0]


def _alone(file: Path) -> int:
    """How often the name itself stands in a file, and not one that begins with it."""
    content = file.read_bytes() if file.exists() else b""
    return len(re.findall(re.escape(_NAME.encode()) + rb"(?!-\d)", content))
