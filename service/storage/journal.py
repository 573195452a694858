"""The writing side: lock experiments, look up what a group of requests needs to know, write all its changes at once.

Used by one transaction at a time per process (service/application/writer.py). Nothing here commits.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from service.domain import ArmRecord, Assignment, Changes, ObservationRecord, Progress, StoredReply
from service.storage import records
from service.storage.groups import Write, insert_into, insert_into_both, query_by, update_of
from service.storage.tables import arms, assignments, batches, events, experiments, observations, replies, snapshots

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from service.storage.groups import Group, Query

# A backlog of expiries is worked off in chunks, so that asks and tells get their turn in between.
DUE_AT_ONCE = 2_000


@dataclass(slots=True)
class Wanted:
    """What the requests of one experiment need to see before they can be decided."""

    draws: set[int] = field(default_factory=set)
    units: set[str] = field(default_factory=set)
    ask_keys: set[str] = field(default_factory=set)
    observation_ids: set[str] = field(default_factory=set)
    reply_keys: set[tuple[str, str]] = field(default_factory=set)
    due_by: int | None = None
    """The assignments that the sweep has to look at by this time, DUE_AT_ONCE at most."""


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


async def lock(group: Group, keys: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Lock these experiments, in one order for all callers; (id, version) of those that exist."""
    found = await group.rows(_LOCK, keys)
    return {row["key"]: (row["id"], row["version"]) for row in found}


async def load(group: Group, experiment_id: int, *, since: int = -1) -> tuple[Progress, list[ArmRecord]]:
    """An experiment with the arms that changed after sequence number `since` (all by default)."""
    row = (await group.rows(_EXPERIMENT, [experiment_id]))[0]
    changed = await group.rows(_ARMS_SINCE, [experiment_id], [since])
    return records.progress_from(row), [records.arm_from(arm) for arm in changed]


async def look_up(group: Group, wanted: dict[int, Wanted]) -> dict[int, Found]:
    """Everything the group asked for, with one statement per kind of question, whatever the number of experiments."""
    found = {experiment_id: Found() for experiment_id in wanted}

    async def ask(query: Query, asked: list[tuple[Any, ...]], keep: Callable[[Found, Any], None]) -> None:
        if asked:
            for row in await group.rows(query, *zip(*asked, strict=True)):
                keep(found[row["experiment_id"]], row)

    def each(name: str) -> list[tuple[Any, ...]]:
        return [(e, value) for e, want in wanted.items() for value in getattr(want, name)]

    await ask(_BY_DRAW, each("draws"), _keep_assignment)
    await ask(_BY_UNIT, each("units"), _keep_by_unit)
    await ask(_BY_KEY, each("ask_keys"), _keep_by_key)
    await ask(_OBSERVATIONS, each("observation_ids"), _keep_observation)
    await ask(_REPLIES, [(e, *route_and_key) for e, route_and_key in each("reply_keys")], _keep_reply)
    for experiment_id, want in wanted.items():
        if want.due_by is not None:
            await ask(_DUE, [(experiment_id, want.due_by)], _keep_due)
    return found


def _keep_assignment(found: Found, row: Any) -> None:  # noqa: ANN401 - a row of either engine
    found.keep(records.assignment_from(row))


def _keep_by_unit(found: Found, row: Any) -> None:  # noqa: ANN401 - likewise
    found.keep(records.assignment_from(row))
    found.by_unit[row["unit"]] = row["draw"]


def _keep_by_key(found: Found, row: Any) -> None:  # noqa: ANN401 - likewise
    found.keep(records.assignment_from(row))
    found.by_key[row["idempotency_key"]] = row["draw"]


def _keep_observation(found: Found, row: Any) -> None:  # noqa: ANN401 - likewise
    found.observations[row["id"]] = records.observation_from(row)


def _keep_reply(found: Found, row: Any) -> None:  # noqa: ANN401 - likewise
    found.replies[row["route"], row["key"]] = records.reply_from(row)


def _keep_due(found: Found, row: Any) -> None:  # noqa: ANN401 - likewise
    found.keep(records.assignment_from(row))
    found.due.append(row["draw"])


async def write(group: Group, changed: Iterable[Changes]) -> None:
    """All rows of all experiments of the group, one statement per table."""
    changed = list(changed)
    writes: list[tuple[Write, Sequence[Any]]] = []

    def add(statement: Write, rows: Sequence[tuple[Any, ...]]) -> None:
        if rows:
            writes.append((statement, list(zip(*rows, strict=True))))

    def of_each(name: str) -> list[tuple[int, Any]]:
        return [(one.progress.experiment.id, item) for one in changed for item in getattr(one, name)]

    add(_INSERT_EVENTS, [records.event_row(e, event) for e, event in of_each("events")])
    add(DRAW, [records.drawn_row(e, drawn) for e, drawn in of_each("drawn")])
    add(_MOVE, [records.assignment_move_row(e, moved) for e, moved in of_each("moved")])
    add(_INSERT_BATCHES, [records.batch_row(e, batch) for e, batch in of_each("batches")])
    add(_INSERT_OBSERVATIONS, [records.observation_row(e, named) for e, named in of_each("observations")])
    add(_INSERT_REPLIES, [records.reply_row(e, reply) for e, reply in of_each("replies")])
    add(_INSERT_SNAPSHOTS, [records.snapshot_row(e, snapshot) for e, snapshot in of_each("snapshots")])
    add(_THIN_SNAPSHOTS, [(one.progress.experiment.id, one.thin_by) for one in changed if one.thin_by is not None])
    versions = {one.progress.experiment.id: one.progress.version for one in changed}
    add(_INSERT_ARMS, [records.arm_row(e, arm, versions[e]) for e, arm in of_each("new_arms")])
    add(_COUNT, [records.arm_count_row(e, arm, versions[e]) for e, arm in of_each("arms")])
    add(_REDEFINE, [records.arm_definition_row(e, arm.arm) for e, arm in of_each("redefined")])
    add(_PROGRESS, [records.progress_row(one.progress) for one in changed])
    add(_SETTINGS, [records.settings_row(one.progress.experiment) for one in changed if one.settings_changed])
    await group.write(writes)


async def is_written(group: Group, changes: Changes) -> bool:
    """Did this group's transaction commit? It is atomic, so one of its rows answers for all."""
    e = changes.progress.experiment.id
    if changes.drawn:
        drawn = changes.drawn[0]
        rows = await group.rows(_BY_DRAW, [e], [drawn.draw])
        return bool(rows) and rows[0]["token"] == drawn.token
    if changes.events:
        event = changes.events[0]
        rows = await group.rows(_EVENT, [e], [event.sequence])
        return bool(rows) and records.event_from(rows[0]) == event
    reply = changes.replies[0]  # a request that changed nothing but is to be answered alike again
    rows = await group.rows(_REPLIES, [e], [reply.route], [reply.key])
    return bool(rows) and records.reply_from(rows[0]) == reply


_LOCK = query_by(
    experiments, ["text"], "t.key = w.a", columns=("id", "key", "version"), tail="ORDER BY t.id", locking="FOR NO KEY UPDATE OF t"
)
_EXPERIMENT = query_by(experiments, ["bigint"], "t.id = w.a")
_ARMS_SINCE = query_by(arms, ["bigint", "bigint"], "t.experiment_id = w.a AND t.changed > w.b", tail="ORDER BY t.position")
_BY_DRAW = query_by(assignments, ["bigint", "bigint"], "t.experiment_id = w.a AND t.draw = w.b")
_BY_KEY = query_by(assignments, ["bigint", "text"], "t.experiment_id = w.a AND t.idempotency_key = w.b")
_BY_UNIT = query_by(
    assignments,
    ["bigint", "text"],
    "t.experiment_id = w.a AND t.draw = (SELECT max(l.draw) FROM assignments l WHERE l.experiment_id = w.a AND l.unit = w.b)",
)
_DUE = query_by(
    assignments,
    ["bigint", "bigint"],
    "t.experiment_id = w.a AND t.due_at <= w.b",
    tail=f"ORDER BY t.due_at, t.draw LIMIT {DUE_AT_ONCE}",
)
_OBSERVATIONS = query_by(observations, ["bigint", "text"], "t.experiment_id = w.a AND t.id = w.b")
_REPLIES = query_by(replies, ["bigint", "text", "text"], "t.experiment_id = w.a AND t.route = w.b AND t.key = w.c")
_EVENT = query_by(events, ["bigint", "bigint"], "t.experiment_id = w.a AND t.sequence = w.b")

_INSERT_EVENTS = insert_into(events)
# A draw is an event and an assignment, both made of the same facts.
DRAW = insert_into_both(
    records.DRAWN,
    (
        events,
        {name: name for name in ("experiment_id", "sequence", "arm", "draw", "epoch", "reason", "expires_at", "expiry_reward")}
        | {"kind": "'draw'", "at": "created_at", "status_after": "'pending'", "closed_after": "closed"},
    ),
    (assignments, {name: name for name, _ in records.DRAWN} | {"status": "'pending'", "due_at": "expires_at"}),
)
_INSERT_ARMS = insert_into(arms)
_INSERT_BATCHES = insert_into(batches)
_INSERT_OBSERVATIONS = insert_into(observations)
_INSERT_REPLIES = insert_into(replies)
_INSERT_SNAPSHOTS = insert_into(snapshots)
_THIN_SNAPSHOTS = Write(
    ("experiment_id", "stride"),
    postgres="DELETE FROM snapshots t USING unnest($1::bigint[], $2::bigint[]) AS v(e, stride) "
    "WHERE t.experiment_id = v.e AND (t.sequence / v.stride) % 2 = 1",
    sqlite=("DELETE FROM snapshots WHERE experiment_id = ? AND (sequence / ?) % 2 = 1",),
)
_MOVE = update_of(assignments, ("experiment_id", "draw"), records.ASSIGNMENT_STATE)
_COUNT = update_of(arms, ("experiment_id", "position"), records.ARM_COUNTS)
_REDEFINE = update_of(arms, ("experiment_id", "position"), records.ARM_DEFINITION)
_PROGRESS = update_of(experiments, ("id",), records.PROGRESS)
_SETTINGS = update_of(experiments, ("id",), records.SETTINGS)
