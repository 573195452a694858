"""A small experiment to which everything has happened that can: what is copied, pruned or forgotten may have it all."""

from __future__ import annotations

from typing import Any, TypeAlias

from service.application.commands import ask
from service.application.commands.arms import AddArm, ChangeArm
from service.application.commands.ask import Ask, AskMany
from service.application.commands.experiments import Patch
from service.application.commands.expire import Sweep
from service.application.commands.idempotency import Once, OnceCommand
from service.application.commands.keep_findings import KeepFindings
from service.application.commands.lifecycle import LifecycleMove
from service.application.commands.observations import ChangeObservation
from service.application.commands.tell import ObservationItem, Observe, RewardItem, Tell, TellMany
from service.domain import Arm, Expiry, PolicyKind, PolicySpec, RewardSpec
from service.domain.callers import ALL_SCOPES, Access, Caller
from service.domain.findings import Finding
from service.storage import experiment_copies
from service.storage.database import Database
from service.storage.queries import stored_experiments, stored_history
from service.web.api.views import encode_answers, encode_results
from testing.workers import Workers

AllRows: TypeAlias = dict[str, list[tuple[Any, ...]]]
_SECOND = 1_000_000


def write_varied(workers: Workers, key: str, policy: PolicyKind = "almost_tracking", *, sticky: bool = False) -> list[str]:
    """Plans, rewards, corrections, voids, expiries of both kinds, observations, arms, moves, findings, replies, lone draws.

    Returns the ids of the last assignments, which are pending.
    """
    spec = PolicySpec(policy, seed=5, batch_size=11 if policy == "almost_tracking" else None)
    arms = [("a", 0.1), ("b", 0.0), ("c", 0.0)]
    workers.create(key, arms, policy=spec, reward=RewardSpec("real"), expiry=Expiry(10.0, 0.5), sticky=sticky)
    early = _ask(workers, key, "early", 20)
    for number, name in enumerate(early[:12]):
        workers.submit(key, Tell(name, "reward", 0.1 * number), number % 2)
    by_key = Access(Caller(ALL_SCOPES, "key_of_somebody", "somebody"), key)
    for change in (Tell(early[0], "correct", 7.25), Tell(early[1], "void"), ChangeArm("b", {"name": "B"})):
        workers.run(workers.contexts[0].writer.submit(by_key, change))
    workers.now += 20 * _SECOND
    workers.submit(key, Sweep(workers.now))
    workers.submit(key, Tell(early[14], "reward", 2.5), 1)
    items = [ObservationItem("a", 1.0, "import-1"), ObservationItem("c", -1.0, None), ObservationItem("a", 0.5, "import-2")]
    workers.submit(key, Observe(items))
    workers.submit(key, ChangeObservation("import-1", reward=0.25), 1)
    workers.submit(key, ChangeObservation("import-2", void=True))
    workers.submit(key, AddArm(Arm(0, "d", "d", {"colour": "röd", "n": [1, 2.5, None]}, 0.05)))
    later = _ask(workers, key, "later", 15)
    workers.submit(key, ChangeArm("c", {"status": "disabled"}), 1)
    workers.submit(key, Patch({"expiry": Expiry(5.0, None), "name": "Ünïcode ✓"}))
    dropped = _ask(workers, key, "dropped", 6)
    workers.submit(key, LifecycleMove("pause"))
    workers.submit(key, LifecycleMove("resume"))
    told = [RewardItem(assignment=name, reward=0.3) for name in [*later[:9], dropped[0]]]
    rewards: Once[Any] = Once("rewards", "told-1", "0" * 64, creates=False, render=encode_results)
    workers.submit(key, OnceCommand(rewards, TellMany(told)))
    workers.now += 7 * _SECOND
    workers.submit(key, Sweep(workers.now))
    last = _ask(workers, key, "last", 40)
    for number, name in enumerate(last[:20]):
        workers.submit(key, Tell(name, "reward", 1.0 / (3 + number)))
    workers.submit(key, Patch({"expiry": None}))
    found = [Finding("separated", 0, 1, 5.0, 0.01), Finding("harmful", 3, 2, 4.5, 0.02)]
    assert len(workers.submit(key, KeepFindings(workers.look(key).version, found))) == 2
    lone = [workers.submit(key, Ask(f"lone-{number}", f"key-{number}"), number % 2).assignment for number in range(3)]
    return last[20:] + [one.id for one in lone if one is not None]


def _ask(workers: Workers, key: str, name: str, count: int) -> list[str]:
    """A batch with an idempotency key, of units that are named after it."""
    units = [f"{name}-{number}" for number in range(count)]
    once: Once[Any] = Once(
        "assignments/batch", f"batch-{name}", "1" * 64, creates=ask.creates, render=encode_answers, note=ask.note_of
    )
    workers.submit(key, OnceCommand(once, AskMany(units, by_count=False)))
    listed = workers.run(_assignments_of(workers.contexts[0].database, key))
    return listed[-count:]


async def _assignments_of(database: Database, key: str) -> list[str]:
    async with database.reading() as connection:
        experiment_id = await stored_experiments.experiment_id_of(connection, key)
        return [one.id async for one, _ in stored_history.all_assignments(connection, experiment_id)]


async def all_rows(database: Database, key: str) -> AllRows:
    """Every row that an experiment has, by table, without its id."""
    async with database.reading() as connection:
        experiment_id = await stored_experiments.experiment_id_of(connection, key)
        return {
            table: [tuple(row) async for rows in experiment_copies.rows_of(connection, table, experiment_id) for row in rows]
            for table in experiment_copies.TABLES
        }
