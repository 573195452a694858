"""The writing side: lock experiments, look up what a group of requests needs to know, write all its changes at once.

Used by one transaction at a time per process (service/application/writer.py). Nothing here commits.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, insert, select, text, update

from service.domain import ArmRecord, Assignment, Changes, ObservationRecord, Progress, StoredReply
from service.storage import records
from service.storage.tables import arms, assignments, batches, events, experiments, observations, replies

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sqlalchemy.ext.asyncio import AsyncConnection
    from sqlalchemy.sql.elements import TextClause


@dataclass(slots=True)
class Wanted:
    """What the requests of one experiment need to see before they can be decided."""

    draws: set[int] = field(default_factory=set)
    units: set[str] = field(default_factory=set)
    ask_keys: set[str] = field(default_factory=set)
    observation_ids: set[str] = field(default_factory=set)
    reply_keys: set[tuple[str, str]] = field(default_factory=set)
    due: tuple[int, int] | None = None
    """(now, at most so many): the assignments that the sweep has to look at."""


@dataclass(slots=True)
class Found:
    """What was there. The caller keeps it current while it decides one request after the other."""

    assignments: dict[int, Assignment] = field(default_factory=dict)
    by_unit: dict[str, int] = field(default_factory=dict)
    by_key: dict[str, int] = field(default_factory=dict)
    observations: dict[str, ObservationRecord] = field(default_factory=dict)
    replies: dict[tuple[str, str], StoredReply] = field(default_factory=dict)
    due: list[int] = field(default_factory=list)

    def keep(self, assignment: Assignment) -> None:
        """Remember an assignment as it is now."""
        self.assignments[assignment.draw] = assignment


async def lock(connection: AsyncConnection, keys: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Lock these experiments, in one order for all callers; (id, version) of those that exist."""
    rows = await connection.execute(_LOCK[connection.dialect.name], _list(connection, "keys", keys))
    return {key: (experiment_id, version) for experiment_id, key, version in rows}


async def load(connection: AsyncConnection, experiment_id: int, *, since: int = -1) -> tuple[Progress, list[ArmRecord]]:
    """An experiment with the arms that changed after sequence number `since` (all by default)."""
    row = (await connection.execute(select(experiments).where(experiments.c.id == experiment_id))).mappings().one()
    changed = select(arms).where(arms.c.experiment_id == experiment_id, arms.c.changed > since).order_by(arms.c.position)
    loaded = [records.arm_from(arm) for arm in (await connection.execute(changed)).mappings()]
    return records.progress_from(row), loaded


async def look_up(connection: AsyncConnection, wanted: dict[int, Wanted]) -> dict[int, Found]:
    """Everything the group asked for, with one statement per kind of question, whatever the number of experiments."""
    found = {experiment_id: Found() for experiment_id in wanted}
    dialect = connection.dialect.name

    draws = [(e, draw) for e, want in wanted.items() for draw in sorted(want.draws)]
    units = [(e, unit) for e, want in wanted.items() for unit in sorted(want.units)]
    keys = [(e, key) for e, want in wanted.items() for key in sorted(want.ask_keys)]
    for pairs, statements in ((draws, _BY_DRAW), (units, _BY_UNIT), (keys, _BY_KEY)):
        if not pairs:
            continue
        rows = await connection.execute(statements[dialect], _pairs(connection, pairs))
        for row in rows.mappings():
            assignment = records.assignment_from(row)
            place = found[row["experiment_id"]]
            place.keep(assignment)
            if statements is _BY_UNIT and assignment.unit is not None:
                place.by_unit[assignment.unit] = assignment.draw
            if statements is _BY_KEY and assignment.idempotency_key is not None:
                place.by_key[assignment.idempotency_key] = assignment.draw

    for experiment_id, want in wanted.items():
        await _look_up_rare(connection, experiment_id, want, found[experiment_id])
    return found


async def _look_up_rare(connection: AsyncConnection, experiment_id: int, want: Wanted, found: Found) -> None:
    """The questions of batch routes and the sweep: asked per experiment, because such groups are large already."""
    dialect = connection.dialect.name
    if want.observation_ids:
        pairs = [(experiment_id, name) for name in sorted(want.observation_ids)]
        rows = await connection.execute(_OBSERVATIONS[dialect], _pairs(connection, pairs))
        found.observations = {row["id"]: records.observation_from(row) for row in rows.mappings()}
    for route, key in want.reply_keys:
        reply = await find_reply(connection, experiment_id, route, key)
        if reply:
            found.replies[route, key] = reply
    if want.due:
        now, limit = want.due
        is_due = (assignments.c.experiment_id == experiment_id) & (assignments.c.due_at <= now)
        due = select(assignments).where(is_due).order_by(assignments.c.due_at, assignments.c.draw).limit(limit)
        for row in (await connection.execute(due)).mappings():
            assignment = records.assignment_from(row)
            found.keep(assignment)
            found.due.append(assignment.draw)


async def find_reply(connection: AsyncConnection, experiment_id: int, route: str, key: str) -> StoredReply | None:
    """The stored first answer to this key on this route; experiment 0 stands for routes outside experiments."""
    named = (replies.c.experiment_id == experiment_id) & (replies.c.route == route) & (replies.c.key == key)
    row = (await connection.execute(select(replies).where(named))).mappings().first()
    return records.reply_from(row) if row else None


async def write(connection: AsyncConnection, group: Iterable[Changes]) -> None:
    """All rows of all experiments of the group, one statement per table."""
    group = list(group)
    rows: dict[Any, list[dict[str, Any]]] = {}

    def add(statement: Any, values: Iterable[dict[str, Any]]) -> None:  # noqa: ANN401 - any executable
        rows.setdefault(statement, []).extend(values)

    for changes in group:
        e = changes.progress.experiment.id
        version = changes.progress.version
        add(_INSERT_EVENTS, (records.event_values(e, event) for event in changes.events))
        add(_INSERT_DRAWN, (records.assignment_values(e, assignment) for assignment in changes.drawn))
        add(_MOVE_ASSIGNMENT, (_moved(e, assignment) for assignment in changes.moved))
        add(_INSERT_ARMS, (records.arm_values(e, arm, version) for arm in changes.new_arms))
        add(_UPDATE_ARM, (_at_arm(e, arm, version) for arm in changes.arms))
        add(_INSERT_BATCHES, (records.batch_values(e, batch) for batch in changes.batches))
        add(_INSERT_OBSERVATIONS, (records.observation_values(e, named) for named in changes.observations))
        add(_INSERT_REPLIES, (records.reply_values(e, reply) for reply in changes.replies))
        if changes.settings_changed:
            settings = records.settings_values(changes.progress.experiment)
            add(_UPDATE_SETTINGS, [{"at_id": e} | settings | records.progress_values(changes.progress)])
        else:
            add(_UPDATE_PROGRESS, [{"at_id": e} | records.progress_values(changes.progress)])
    for statement, values in rows.items():
        if values:
            await connection.execute(statement, values)


async def is_written(connection: AsyncConnection, changes: Changes) -> bool:
    """Did this group's transaction commit? It is atomic, so one of its rows answers for all."""
    e = changes.progress.experiment.id
    if changes.drawn:
        drawn = changes.drawn[0]
        token = select(assignments.c.token).where(assignments.c.experiment_id == e, assignments.c.draw == drawn.draw)
        return bool((await connection.execute(token)).scalar_one_or_none() == drawn.token)
    event = changes.events[0]
    stored = select(events).where(events.c.experiment_id == e, events.c.sequence == event.sequence)
    row = (await connection.execute(stored)).mappings().first()
    return row is not None and records.event_from(row) == event


def _moved(experiment_id: int, assignment: Assignment) -> dict[str, Any]:
    return {"at_experiment": experiment_id, "at_draw": assignment.draw} | records.assignment_state_values(assignment)


def _at_arm(experiment_id: int, arm: ArmRecord, version: int) -> dict[str, Any]:
    values = records.arm_values(experiment_id, arm, version)
    return {"at_experiment": values.pop("experiment_id"), "at_position": values.pop("position")} | values


_INSERT_EVENTS = insert(events)
_INSERT_DRAWN = insert(assignments)
_INSERT_ARMS = insert(arms)
_INSERT_BATCHES = insert(batches)
_INSERT_OBSERVATIONS = insert(observations)
_INSERT_REPLIES = insert(replies)
_MOVE_ASSIGNMENT = update(assignments).where(
    assignments.c.experiment_id == bindparam("at_experiment"), assignments.c.draw == bindparam("at_draw")
)
_UPDATE_ARM = update(arms).where(arms.c.experiment_id == bindparam("at_experiment"), arms.c.position == bindparam("at_position"))
_UPDATE_PROGRESS = update(experiments).where(experiments.c.id == bindparam("at_id"))
_UPDATE_SETTINGS = update(experiments).where(experiments.c.id == bindparam("at_id"))


# Lists travel as one parameter, so that a statement keeps its text (and its prepared plan) whatever their length.
# CROSS JOIN keeps SQLite from scanning the large table first.
def _list(connection: AsyncConnection, name: str, values: Sequence[str]) -> dict[str, Any]:
    return {name: list(values) if connection.dialect.name == "postgresql" else records.to_json(list(values))}


def _pairs(connection: AsyncConnection, pairs: Sequence[tuple[int, int | str]]) -> dict[str, Any]:
    if connection.dialect.name == "postgresql":
        return {"experiments": [e for e, _ in pairs], "wanted": [value for _, value in pairs]}
    return {"pairs": records.to_json(pairs)}


def _by_pairs(table: str, condition: str, kind: str) -> dict[str, TextClause]:
    columns = ", ".join(f"t.{column.name}" for column in experiments.metadata.tables[table].columns)
    rest = f"CROSS JOIN {table} t WHERE t.experiment_id = w.e AND {condition}"
    unnested = f"unnest(CAST(:experiments AS bigint[]), CAST(:wanted AS {kind}[])) AS w(e, v)"
    parsed = "(SELECT json_extract(value, '$[0]') AS e, json_extract(value, '$[1]') AS v FROM json_each(:pairs)) AS w"
    return {
        "postgresql": text(f"SELECT {columns} FROM {unnested} {rest}"),  # noqa: S608 - names from our own tables
        "sqlite": text(f"SELECT {columns} FROM {parsed} {rest}"),  # noqa: S608 - names from our own tables
    }


_LOCK = {
    "postgresql": text(
        "SELECT id, key, version FROM experiments WHERE key = ANY(CAST(:keys AS text[])) ORDER BY id FOR NO KEY UPDATE"
    ),
    "sqlite": text("SELECT id, key, version FROM experiments WHERE key IN (SELECT value FROM json_each(:keys))"),
}
_BY_DRAW = _by_pairs("assignments", "t.draw = w.v", "bigint")
_BY_KEY = _by_pairs("assignments", "t.idempotency_key = w.v", "text")
_BY_UNIT = _by_pairs(
    "assignments",
    "t.draw = (SELECT max(l.draw) FROM assignments l WHERE l.experiment_id = w.e AND l.unit = w.v)",
    "text",
)
_OBSERVATIONS = _by_pairs("observations", "t.id = w.v", "text")
