"""Replay finds nothing in an honest history, and names whatever was edited by hand."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from sqlalchemy import text

from service.application.commands.arms import AddArm, ChangeArm
from service.application.commands.ask import Ask, AskMany
from service.application.commands.experiments import Patch
from service.application.commands.expire import Sweep
from service.application.commands.keep_findings import KeepFindings
from service.application.commands.lifecycle import LifecycleMove
from service.application.commands.observations import ChangeObservation
from service.application.commands.tell import ObservationItem, Observe, Tell
from service.application.reads.differences import Difference
from service.application.reads.replay import replay
from service.domain import Arm, Expiry, PolicyKind, PolicySpec, RewardSpec
from service.domain.callers import ALL_SCOPES, Access, Caller, by_service
from service.domain.findings import Finding
from service.engine.queue import Command
from testing.databases import NewDatabase
from testing.history import write_history
from testing.workers import Workers

_KEY = "tampered"
_SECOND = 1_000_000


@dataclass
class Experiment:
    """An experiment with a bit of everything in its history, and a way to edit its rows."""

    workers: Workers
    id: int

    def rows(self, statement: str, **values: object) -> list[Any]:
        """Read."""

        async def read() -> list[Any]:
            async with self.workers.contexts[0].database.reading() as connection:
                return list(await connection.execute(text(statement), {"e": self.id} | values))

        return self.workers.run(read())

    def write(self, statement: str, **values: object) -> None:
        """Edit by hand."""

        async def change() -> None:
            async with self.workers.contexts[0].database.writing() as connection:
                await connection.execute(text(statement), {"e": self.id} | values)

        self.workers.run(change())

    def difference(self) -> str:
        """What replay says, or an empty string."""
        try:
            self.workers.replay(_KEY)
        except Difference as found:
            return str(found)
        return ""


@pytest.fixture(scope="module")
def experiment(new_database: NewDatabase) -> Iterator[Experiment]:
    """Draws of a plan, rewards, corrections, voids, expiries of both kinds, maturities, observations, arm changes, a pause."""
    workers = Workers(new_database())
    workers.create(
        _KEY,
        [("a", 0.1), ("b", 0.0), ("c", 0.0)],
        policy=PolicySpec("almost_tracking", seed=5, batch_size=11),
        reward=RewardSpec("real"),
        expiry=Expiry(10.0, 0.5),
    )

    def ask(count: int, worker: int) -> list[str]:
        answers = workers.submit(_KEY, AskMany([None] * count, by_count=True), worker)
        return [answer.assignment.id for answer in answers if answer.assignment]

    early = ask(20, 0)
    for number, name in enumerate(early[:12]):
        workers.submit(_KEY, Tell(name, "reward", 0.1 * number), number % 2)
    workers.submit(_KEY, Tell(early[0], "correct", 7.25))
    workers.submit(_KEY, Tell(early[1], "void"))
    workers.submit(_KEY, Tell(early[13], "void"))
    workers.now += 20 * _SECOND
    workers.submit(_KEY, Sweep(workers.now))
    workers.submit(_KEY, Tell(early[14], "reward", 2.5), 1)
    workers.submit(_KEY, Tell(early[1], "correct", 1.5), 1)
    workers.submit(_KEY, Observe([ObservationItem("b", 0.75, "import-1"), ObservationItem("c", -1.0, None)]))
    workers.submit(_KEY, Observe([ObservationItem("a", 1.0, "import-3"), ObservationItem("a", 0.5, "import-2")]))
    workers.submit(_KEY, ChangeObservation("import-2", reward=0.25), 1)
    workers.submit(_KEY, ChangeObservation("import-2", void=True))
    workers.submit(_KEY, AddArm(Arm(0, "d", "d", {"colour": "red"}, 0.05)))
    workers.submit(_KEY, ChangeObservation("import-2", reward=0.75), 1)
    workers.submit(_KEY, ChangeObservation("import-3", void=True))
    later = ask(15, 1)
    workers.submit(_KEY, ChangeArm("b", {"status": "disabled"}), 1)
    workers.submit(_KEY, ChangeArm("c", {"min_share": 0.2, "name": "C"}))
    workers.submit(_KEY, Patch({"expiry": Expiry(5.0, None)}))
    dropped = ask(6, 0)
    workers.submit(_KEY, LifecycleMove("pause"))
    workers.submit(_KEY, LifecycleMove("resume"))
    workers.submit(_KEY, ChangeArm("b", {"status": "active"}))
    for number, name in enumerate([*later[:9], dropped[0]]):
        workers.submit(_KEY, Tell(name, "reward", 0.3 * number))
    workers.now += 7 * _SECOND
    workers.submit(_KEY, Sweep(workers.now))
    last = ask(9, 0)
    workers.submit(_KEY, Tell(last[0], "reward", 3.0))
    version = workers.look(_KEY).version
    seen = [Finding("separated", 0, 1, 5.0, 0.01), Finding("separated", 0, 2, 5.0, 0.01), Finding("harmful", 3, 2, 4.5, 0.02)]
    assert len(workers.submit(_KEY, KeepFindings(version, seen))) == 3
    assert workers.submit(_KEY, KeepFindings(version, seen), 1) == []
    workers.submit(_KEY, ChangeObservation("import-1", reward=0.5))  # of arm b: what concerns it ends
    [(number,)] = Experiment(workers, 0).rows(f"SELECT id FROM experiments WHERE key = '{_KEY}'")
    made = Experiment(workers, number)
    assert made.difference() == ""
    yield made
    assert made.difference() == ""  # every edit was taken back
    workers.close()


def other(value: Any, column: str) -> Any:  # noqa: ANN401, PLR0911 - a cell; one case per kind of column
    """Another value that the column could hold."""
    if column == "arm":
        return (value + 1) % 4
    if isinstance(value, bool):
        return not value
    if column.startswith("closed") or column in ("sticky", "may_expire"):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if "status" in column:
        choices = ["rewarded", "voided", "disabled", "running"]
        return next(choice for choice in choices if choice != value)
    if re.fullmatch(r"-?\d+(/2\^\d+)?", value):
        return str(int(value.partition("/")[0]) + 2) + value[value.find("/") :] if "/" in value else str(int(value) + 1)
    if column in ("positions", "counts"):
        return json.dumps([json.loads(value)[0] + 1, *json.loads(value)[1:]])
    return {"batch": "track", "warmup": "batch", "draw": "void"}.get(value, value + "x")


_EVENTS = [
    *((column, kind) for column in ("arm", "draw", "epoch", "reason", "at", "kind") for kind in ("draw",)),
    *((column, kind) for column in ("expires_at", "expiry_reward", "status_after", "closed_after") for kind in ("draw",)),
    *(
        (column, kind)
        for kind in ("reward", "correction", "expiry", "maturity", "void")
        for column in ("arm", "draw", "epoch", "status_before", "status_after", "closed_before", "closed_after")
    ),
    *((column, kind) for kind in ("reward", "correction", "expiry", "maturity") for column in ("reward_after",)),
    *((column, kind) for kind in ("correction", "maturity", "void") for column in ("reward_before",)),
    *((column, kind) for kind in ("reward", "correction") for column in ("at",)),
    *((column, "observation") for column in ("arm", "epoch", "status_after", "reward_after", "closed_after")),
    *(
        (column, kind)
        for kind in ("observation_edit", "observation_void")
        for column in ("arm", "epoch", "status_before", "status_after", "closed_before", "closed_after")
    ),
    ("reward_after", "observation_edit"),
    ("reward_before", "observation_void"),
    ("arm", "arm_added"),
    ("arm", "arm_changed"),
]


@pytest.mark.parametrize(("column", "kind"), _EVENTS)
def test_an_edited_event_is_found_and_named(experiment: Experiment, column: str, kind: str) -> None:
    """An arm, a reward, a state or a number in the history: replay names the event or the assignment it belongs to."""
    where = f"FROM events WHERE experiment_id = :e AND kind = :kind AND {column} IS NOT NULL"
    rows = experiment.rows(f"SELECT sequence, draw, {column} {where} ORDER BY sequence", kind=kind)
    sequence, draw, value = rows[len(rows) // 2]
    update = f"UPDATE events SET {column} = :value WHERE experiment_id = :e AND sequence = :sequence"
    experiment.write(update, value=other(value, column), sequence=sequence)
    try:
        said = experiment.difference()
    finally:
        experiment.write(update, value=value, sequence=sequence)
    named = rf"\b(Event {sequence}|[Aa]ssignment {draw})\b"
    if kind == "observation" and column == "reward_after" and said.startswith(("Arm", "Event")):
        return  # an unnamed observation stands nowhere else: the first number that follows from it is named
    if kind.startswith("observation"):
        named += r"|Observation 'import-\d'"
    assert re.search(named, said), said


def test_what_was_done_with_a_key_is_repeated_so(workers: Workers) -> None:
    """A patch, an arm, a correction, a void, an observation and a move by a key, which the history names: no difference."""
    workers.create(_KEY, [("a", 0.0), ("b", 0.0)])
    drawn = [workers.submit(_KEY, Ask(None)).assignment for _ in range(2)]
    workers.submit(_KEY, Observe([ObservationItem("a", 1.0, "import-1")]))
    holder = Access(Caller(ALL_SCOPES, "key_of_somebody", "somebody"), _KEY)
    ids = [one.id for one in drawn if one]
    done: list[Command[Any]] = [
        *(Tell(name, "reward", 1.0) for name in ids),
        Tell(ids[0], "correct", 0.0),
        Tell(ids[1], "void"),
        ChangeObservation("import-1", reward=0.0),
        ChangeArm("a", {"name": "A"}),
        AddArm(Arm(0, "c", "c", None)),
        Patch({"name": "other"}),
        LifecycleMove("pause"),
    ]
    for command in done:
        workers.run(workers.contexts[0].writer.submit(holder, command))
    assert workers.replay(_KEY) == 4 + len(done)
    made = Experiment(workers, 1)
    made.write("UPDATE events SET details = replace(details, 'somebody', 'nobody') WHERE kind = 'void'")
    assert made.difference() == ""  # who did it follows from nothing else


@pytest.mark.parametrize("kind", ["maturity", "void", "expiry"])
def test_a_step_that_leaves_another_reward_is_named_even_if_all_rows_agree(experiment: Experiment, kind: str) -> None:
    """A forged maturity, void or expiry whose assignment says the same: the rule of the step does not allow it."""
    last = (
        "FROM events e WHERE experiment_id = :e AND kind = :kind AND expiry_reward IS NOT NULL AND NOT EXISTS"
        " (SELECT 1 FROM events n WHERE n.experiment_id = e.experiment_id AND n.draw = e.draw AND n.sequence > e.sequence)"
    )
    sequence, draw, reward = experiment.rows(f"SELECT sequence, draw, reward_after {last} ORDER BY sequence", kind=kind)[0]

    def say(value: float | None) -> None:
        event = "UPDATE events SET reward_after = :value WHERE experiment_id = :e AND sequence = :s"
        experiment.write(event, value=value, s=sequence)
        experiment.write("UPDATE assignments SET reward = :value WHERE experiment_id = :e AND draw = :d", value=value, d=draw)

    say(0.875)
    try:
        said = experiment.difference()
    finally:
        say(reward)
    assert said == f"Event {sequence} of assignment {draw}: a {kind} cannot leave 0.875 as the reward."


@pytest.mark.parametrize("kind", ["draw", "reward", "correction", "void", "expiry", "maturity", "observation", "arm_changed"])
def test_a_missing_event_is_found_and_named(experiment: Experiment, kind: str) -> None:
    """A hole in the sequence."""
    columns = (
        "sequence, kind, at, arm, draw, epoch, reason, expires_at, expiry_reward, status_before, reward_before, closed_before"
    )
    names = [*columns.split(", "), "status_after", "reward_after", "closed_after", "details"]
    listed = ", ".join(names)
    read = f"SELECT {listed} FROM events WHERE experiment_id = :e AND kind = :kind ORDER BY sequence"
    row = experiment.rows(read, kind=kind)[-1]
    experiment.write("DELETE FROM events WHERE experiment_id = :e AND sequence = :s", s=row[0])
    try:
        said = experiment.difference()
    finally:
        places = ", ".join(f":{name}" for name in names)
        again = f"INSERT INTO events (experiment_id, {listed}) VALUES (:e, {places})"
        experiment.write(again, **dict(zip(names, row, strict=True)))
    assert re.search(rf"\b(Event {row[0]}|[Aa]ssignment {row[4]})\b", said), said


_PROJECTIONS = [
    *(
        ("assignments", column)
        for column in (
            *("arm", "sequence", "reason", "epoch", "created_at", "expires_at", "expiry_reward"),
            *("status", "reward", "closed", "rewarded_at", "due_at"),
        )
    ),
    *(
        ("arms", column)
        for column in (
            *("key", "name", "min_share", "status", "added", "pending", "expired", "epoch_draws", "observations"),
            *("reward_sum", "reward_squares", "imputed", "imputed_sum", "imputed_squares"),
            *("matured", "matured_sum", "matured_squares", "planned", "plan_left", "plan_weight_sum"),
        )
    ),
    *(
        ("experiments", column)
        for column in (
            *("status", "version", "as_of", "draws", "epoch", "batch", "plan_cursor", "plan_averaged", "may_expire"),
            *("confidence", "sticky", "name"),
        )
    ),
    *(("batches", column) for column in ("sequence", "positions", "counts")),
    *(("observations", column) for column in ("arm", "reward", "sequence", "status", "epoch", "changed")),
    *(("findings", column) for column in ("better", "worse", "evidence", "level", "sequence", "at")),
]
_PLACES = {"assignments": "draw", "arms": "position", "experiments": "id", "batches": "number", "observations": "id"}
_PLACES["findings"] = "kind"


@pytest.mark.parametrize(("table", "column"), _PROJECTIONS)
def test_an_edited_projection_is_found_and_named(experiment: Experiment, table: str, column: str) -> None:
    """An assignment, an arm's statistics, the experiment's counters, a batch or a named observation: replay says which."""
    place = _PLACES[table]
    owner = "id" if table == "experiments" else "experiment_id"
    name = "key" if table == "arms" else place
    read = f"SELECT {place}, {name}, {column} FROM {table} WHERE {owner} = :e AND {column} IS NOT NULL ORDER BY {place}"
    rows = experiment.rows(read)
    where, shown, value = rows[len(rows) // 2]
    update = f"UPDATE {table} SET {column} = :value WHERE {owner} = :e AND {place} = :place"
    experiment.write(update, value=other(value, column), place=where)
    try:
        said = experiment.difference()
    finally:
        experiment.write(update, value=value, place=where)
    shown = other(value, column) if column == "key" else shown
    named = {
        "assignments": f"Assignment {shown}",
        "arms": f"Arm '{shown}'",
        "experiments": "The experiment|Event",
        "batches": f"Batch {shown}",
        "observations": f"Observation.*{shown}",
        "findings": "Finding",
    }
    assert re.search(named[table], said), said


@pytest.mark.parametrize(
    ("table", "place", "where"), [("assignments", "draw", 7), ("batches", "number", 2), ("findings", "arm", 2)]
)
def test_a_missing_row_is_found_and_named(experiment: Experiment, table: str, place: str, where: int) -> None:
    """A draw without its assignment, a plan or a finding that was not stored."""
    update = f"UPDATE {table} SET {place} = :new WHERE experiment_id = :e AND {place} = :old"
    experiment.write(update, old=where, new=1_000_000)
    try:
        said = experiment.difference()
    finally:
        experiment.write(update, old=1_000_000, new=where)
    assert re.search(rf"\b(Assignment|Batch|Finding .*) {where}\b", said), said


@pytest.mark.process
def test_the_command_says_what_differs_and_fails(database_url: str, key: str) -> None:
    """`bestarm replay` ends with 0 on an honest history, with 1 and the place on an edited one, with 2 on an unknown key."""
    workers = Workers(database_url)
    workers.create(key, [("a", 0.0), ("b", 0.0)])
    for number in range(10):
        answer = workers.submit(key, Ask(None), number % 2)
        assert answer.assignment is not None
        workers.submit(key, Tell(answer.assignment.id, "reward", float(number % 2)))

    def run(name: str) -> tuple[int, str]:
        command = [sys.executable, "-m", "service", "replay", name]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env=os.environ | {"BESTARM_DATABASE_URL": database_url}
        )
        return done.returncode, done.stdout

    assert run(key) == (0, f"{key}: 21 events replayed, no difference.\n")
    Experiment(workers, 1).write("UPDATE assignments SET reward = 1 WHERE experiment_id = :e AND draw = 5")
    code, said = run(key)
    assert (code, "Assignment 5" in said, "reward" in said) == (1, True, True), said
    assert run("nobody")[0] == 2
    workers.close()


def test_replay_of_a_live_experiment_sees_one_state(workers: Workers, key: str) -> None:
    """Draws and rewards that come while it runs are not differences."""
    workers.create(key, [("a", 0.0), ("b", 0.0)], policy=PolicySpec("almost_tracking", seed=1))
    write_history(workers, key, 500)

    async def traffic() -> None:
        writer = workers.contexts[1].writer
        for number in range(150):
            answer = await writer.submit(by_service(key), Ask(None))
            assert answer.assignment is not None
            if number % 3:
                await writer.submit(by_service(key), Tell(answer.assignment.id, "reward", 1.0))
            await writer.submit(by_service(key), Observe([ObservationItem("a", 1.0, f"live-{number}")]))

    async def both() -> None:
        going = asyncio.create_task(traffic())
        replays = 0
        while not going.done() or not replays:
            await replay(workers.contexts[0].database, key)
            replays += 1
        await going

    workers.run(both())
    assert workers.look(key).progress.draws == 650


def test_a_long_history_with_corrections_and_arm_changes_replays_without_a_difference(workers: Workers, key: str) -> None:
    """Five thousand draws (the long profile: 100,000, benchmarks/long_history.py) of a traffic with everything in it."""
    workers.create(key, [(name, 0.0) for name in "abcde"], expiry=Expiry(3_600.0, 0.0))
    write_history(workers, key, 5_000)
    assert workers.look(key).progress.draws == 5_000
    assert workers.replay(key) > 10_000


@pytest.mark.parametrize("kind", ["simple_tracking", "almost_tracking"])
def test_an_experiment_from_before_ties_guard_and_kept_floors_goes_on_as_it_was(
    workers: Workers, key: str, kind: PolicyKind
) -> None:
    """Settings and events without these parameters mean the paper's ties, no guard and floors that are only mixed in."""
    workers.create(key, [("a", 0.5), ("b", 0.2), ("c", 0.0), ("d", 0.0)], policy=PolicySpec(kind, seed=3, sharpness=1.5))
    experiment = Experiment(workers, workers.look(key).progress.experiment.id)
    [(stored,)] = experiment.rows("SELECT policy FROM experiments WHERE id = :e")
    [(created,)] = experiment.rows("SELECT details FROM events WHERE experiment_id = :e AND sequence = 1")
    policy, details = json.loads(stored), json.loads(created)
    for one in (policy, details["experiment"]["policy"]):
        for name in ("guard", "ties", "keeps_floors"):
            del one[name]
    experiment.write("UPDATE experiments SET policy = :policy WHERE id = :e", policy=json.dumps(policy))
    experiment.write("UPDATE events SET details = :d WHERE experiment_id = :e AND sequence = 1", d=json.dumps(details))
    workers.restart()
    assert workers.look(key).progress.experiment.policy == PolicySpec(kind, seed=3, sharpness=1.5)
    for number in range(120):
        answer = workers.submit(key, Ask(None))
        assert answer.assignment is not None
        workers.submit(key, Tell(answer.assignment.id, "reward", float(number % 3 == 0)))
    assert workers.replay(key) > 240
    details["experiment"]["policy"] |= {"ties": "limit", "keeps_floors": True}
    experiment.write("UPDATE events SET details = :d WHERE experiment_id = :e AND sequence = 1", d=json.dumps(details))
    with pytest.raises(Difference):
        workers.replay(key)
