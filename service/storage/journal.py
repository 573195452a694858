"""The writing side: lock experiments, look up what a group of requests needs to know, write all its changes at once.

Used by one transaction at a time per process (service/application/writer.py). Nothing here commits.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from service.domain import ArmRecord, Assignment, Changes, ObservationRecord, Progress, StoredReply
from service.storage import records
from service.storage.groups import Write, insert_and_update, insert_into, query_by, update_of
from service.storage.tables import arms, assignments, batches, events, experiments, observations, replies, snapshots

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from service.domain import Event
    from service.storage.groups import Group, Groups, Guard, Query, Reads, Stage

    Row = tuple[Any, ...]

Name = TypeVar("Name")
Thing = TypeVar("Thing")
# A backlog of expiries is worked off in chunks, so that asks and tells get their turn in between.
DUE_AT_ONCE = 2_000


class Wanted(msgspec.Struct):
    """What the requests of one experiment need to see before they can be decided."""

    draws: set[int] = msgspec.field(default_factory=set)
    units: set[str] = msgspec.field(default_factory=set)
    ask_keys: set[str] = msgspec.field(default_factory=set)
    observation_ids: set[str] = msgspec.field(default_factory=set)
    reply_keys: set[tuple[str, str]] = msgspec.field(default_factory=set)
    new_ask_keys: set[str] = msgspec.field(default_factory=set)
    new_reply_keys: set[tuple[str, str]] = msgspec.field(default_factory=set)
    """Keys whose requests have an effect if they are new. Without the lock that is found out when the effect is written."""
    due_by: int | None = None
    """The assignments that the sweep has to look at by this time, DUE_AT_ONCE at most."""

    def is_nothing(self) -> bool:
        """True if there is nothing to look up."""
        asked = self.draws or self.units or self.ask_keys or self.observation_ids or self.reply_keys
        return not asked and self.due_by is None

    def forget_new(self) -> None:
        """Nobody will look for the new keys."""
        self.new_ask_keys.clear()
        self.new_reply_keys.clear()


class NotLookedUp(Exception):  # noqa: N818 - no error: the same is decided again, under the lock
    """A decision turned out to depend on something that was not looked up."""


class Found(msgspec.Struct):
    """What was there. The caller keeps it current while it decides one request after the other."""

    assignments: dict[int, Assignment] = msgspec.field(default_factory=dict)
    by_unit: dict[str, int] = msgspec.field(default_factory=dict)
    by_key: dict[str, int] = msgspec.field(default_factory=dict)
    observations: dict[str, ObservationRecord] = msgspec.field(default_factory=dict)
    replies: dict[tuple[str, str], StoredReply] = msgspec.field(default_factory=dict)
    due: list[int] = msgspec.field(default_factory=list)
    ask_keys: set[str] = msgspec.field(default_factory=set)
    reply_keys: set[tuple[str, str]] = msgspec.field(default_factory=set)
    """The keys that were looked for. Nobody knows yet whether any other was used before."""

    def overlay(self, newer: Found, wanted: Wanted) -> None:
        """What is newer stands above what was read, and for what could not be read yet. Nothing else of it comes in."""
        by_unit = _part_of(newer.by_unit, wanted.units)
        by_key = _part_of(newer.by_key, wanted.ask_keys | wanted.new_ask_keys)
        draws = {*self.assignments, *wanted.draws, *by_unit.values(), *by_key.values()}
        self.by_unit |= by_unit
        self.by_key |= by_key
        self.assignments |= _part_of(newer.assignments, draws)
        self.observations |= _part_of(newer.observations, wanted.observation_ids)
        self.replies |= _part_of(newer.replies, wanted.reply_keys | wanted.new_reply_keys)

    def update(self, newer: Found) -> None:
        """What was found, or happened, later stands above what was there."""
        self.ask_keys |= newer.ask_keys
        self.reply_keys |= newer.reply_keys
        self.assignments |= newer.assignments
        self.by_unit |= newer.by_unit
        self.by_key |= newer.by_key
        self.observations |= newer.observations
        self.replies |= newer.replies


def _part_of(whole: dict[Name, Thing], names: set[Name]) -> dict[Name, Thing]:
    return {name: whole[name] for name in names & whole.keys()}


async def lock(group: Group, keys: Sequence[str]) -> dict[str, Progress]:
    """Lock these experiments, in one order for all callers; those that exist, as they are under the lock."""
    return {row["key"]: records.progress_from(row) for row in await group.rows(_LOCK, keys)}


async def find(group: Reads, keys: Sequence[str]) -> dict[str, Progress]:
    """Those of the experiments that exist, without a lock."""
    return {row["key"]: records.progress_from(row) for row in await group.rows(_FIND, keys)}


async def arms_since(group: Reads, versions: dict[int, int]) -> dict[int, list[ArmRecord]]:
    """The arms of these experiments that changed after these versions, by one statement; after version -1, all."""
    moved: dict[int, list[ArmRecord]] = {experiment_id: [] for experiment_id in versions}
    for row in await group.rows(_ARMS_SINCE, list(versions), list(versions.values())):
        moved[row["experiment_id"]].append(records.arm_from(row))
    return moved


async def look_up(group: Reads, wanted: dict[int, Wanted], *, under_lock: bool) -> dict[int, Found]:
    """Everything the group asked for, with one statement per kind of question, whatever the number of experiments."""
    found = {experiment_id: Found() for experiment_id in wanted}
    nothing = True
    for experiment_id, want in wanted.items():
        if under_lock:
            want.ask_keys |= want.new_ask_keys
            want.reply_keys |= want.new_reply_keys
        found[experiment_id].ask_keys, found[experiment_id].reply_keys = want.ask_keys, want.reply_keys
        nothing = nothing and want.is_nothing()
    if nothing:
        return found

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
    assignment = records.assignment_of(row)
    found.assignments[assignment.draw] = assignment


def _keep_by_unit(found: Found, row: Any) -> None:  # noqa: ANN401 - likewise
    _keep_assignment(found, row)
    found.by_unit[row["unit"]] = row["draw"]


def _keep_by_key(found: Found, row: Any) -> None:  # noqa: ANN401 - likewise
    _keep_assignment(found, row)
    found.by_key[row["idempotency_key"]] = row["draw"]


def _keep_observation(found: Found, row: Any) -> None:  # noqa: ANN401 - likewise
    found.observations[row["id"]] = records.observation_from(row)


def _keep_reply(found: Found, row: Any) -> None:  # noqa: ANN401 - likewise
    found.replies[row["route"], row["key"]] = records.reply_from(row)


def _keep_due(found: Found, row: Any) -> None:  # noqa: ANN401 - likewise
    _keep_assignment(found, row)
    found.due.append(row["draw"])


def stages_of(changed: Sequence[Changes]) -> list[Stage]:
    """All rows of all experiments of the group, one write per table.

    No stage touches a row twice: what changes a row that was written a moment ago waits for the second one.
    """
    if len(changed) == 1 and changed[0].is_draws():
        return [_draws(changed[0])]
    rows: defaultdict[Write, list[Row]] = defaultdict(list)
    for one in changed:
        progress = one.progress
        e, version = progress.experiment.id, progress.version
        if one.drawn:
            rows[DRAW] += [records.drawn_row(e, drawn) for drawn in one.drawn]
        if one.drawn_arms:
            rows[_COUNT_DRAWS] += [records.arm_draws_row(e, arm, version) for arm in one.drawn_arms]
        if one.arms:
            rows[_COUNT] += [records.arm_count_row(e, arm, version) for arm in one.arms]
        if one.events:
            _add_events(rows, e, one)
        if one.snapshots:
            rows[_INSERT_SNAPSHOTS] += [records.snapshot_row(e, snapshot) for snapshot in one.snapshots]
        if one.replies:
            rows[_INSERT_REPLIES] += [records.reply_row(e, reply) for reply in one.replies]
        rows[_PROGRESS].append(records.progress_row(progress))
        if not one.is_plain():
            _add_the_rest(rows, e, one)
    first = [(write, rows[write]) for write in _FIRST if rows.get(write)]
    second = [(write, rows[write]) for write in _SECOND if rows.get(write)]
    return [first, second] if second else [first]


def _draws(one: Changes) -> Stage:
    """The rows of one experiment that was only asked: what the service does all day."""
    progress = one.progress
    e, version = progress.experiment.id, progress.version
    return [
        (DRAW, [records.drawn_row(e, drawn) for drawn in one.drawn]),
        (_COUNT_DRAWS, [records.arm_draws_row(e, arm, version) for arm in one.drawn_arms]),
        (_DRAW_ON, [records.progress_row(progress)]),
    ]


def _add_the_rest(rows: defaultdict[Write, list[Row]], e: int, one: Changes) -> None:
    """What asks and tells do not do, or seldom."""
    rows[_INSERT_BATCHES] += [records.batch_row(e, batch) for batch in one.batches]
    rows[_INSERT_OBSERVATIONS] += [records.observation_row(e, named) for named in one.observations]
    rows[_INSERT_ARMS] += [records.arm_row(e, arm, one.progress.version) for arm in one.new_arms]
    rows[_MOVE] += [records.assignment_move_row(e, moved) for moved in one.moved]
    rows[_REDEFINE] += [records.arm_definition_row(e, record.arm) for record in one.redefined]
    rows[_THIN_SNAPSHOTS] += [records.progress_row(one.progress)] if one.thin else []
    rows[_SETTINGS] += [records.settings_row(one.progress.experiment)] if one.settings_changed else []


def _add_events(rows: defaultdict[Write, list[Row]], e: int, one: Changes) -> None:
    """Some say all about what became of their assignments, and change these, too; the others are just kept."""
    again = {assignment.draw for assignment in one.moved}
    told, other = rows[_TELL], rows[_INSERT_EVENTS]
    for event in one.events:
        (other if event.draw is None or event.draw in again else told).append(records.event_row(e, event))


async def write_if(groups: Groups, guard: Guard, changed: Sequence[Changes]) -> bool:
    """Write all changes if the experiments are still what they were when they were decided on. No change: are they?"""
    if changed:
        return await groups.write_if(guard, stages_of(changed))
    if not guard:
        return True
    found = await groups.rows(_VERSIONS, [experiment_id for experiment_id, _ in guard])
    return {row["id"]: row["version"] for row in found} == dict(guard)


async def is_written(group: Reads, changed: Sequence[Changes]) -> bool:
    """Did this group's transaction commit?

    It is atomic, so a draw answers for all of it: its token is this group's alone. Without a draw all its events and replies
    must be there, equal. If another worker wrote them, they are no less durable.
    """
    for one in changed:
        if one.drawn:
            rows = await group.rows(_BY_DRAW, [one.progress.experiment.id], [one.drawn[0].draw])
            return bool(rows) and rows[0]["token"] == one.drawn[0].token
    for one in changed:
        e = one.progress.experiment.id
        stored = await group.rows(_EVENT, [e] * len(one.events), [event.sequence for event in one.events]) if one.events else []
        if sorted((records.event_from(row) for row in stored), key=_sequence_of) != sorted(one.events, key=_sequence_of):
            return False
        for reply in one.replies:
            rows = await group.rows(_REPLIES, [e], [reply.route], [reply.key])
            if not rows or records.reply_from(rows[0]) != reply:
                return False
    return True


def _sequence_of(event: Event) -> int:
    return event.sequence


_FIND = query_by(experiments, ["text"], "t.key = w.a")
_VERSIONS = query_by(experiments, ["bigint"], "t.id = w.a", columns=("id", "version"))
_LOCK = query_by(experiments, ["text"], "t.key = w.a", tail="ORDER BY t.id", locking="FOR NO KEY UPDATE OF t")
_ARMS_SINCE = query_by(arms, ["bigint", "bigint"], "t.experiment_id = w.a AND t.changed > w.b", tail="ORDER BY t.position")
_BY_DRAW = query_by(
    assignments,
    ["bigint", "bigint"],
    "t.experiment_id = w.a AND t.draw = w.b",
    of_one="t.experiment_id = $1::bigint AND t.draw = ANY($2::bigint[])",
)
# The difference keeps the planner from reading all of the experiment by its primary key, which looks as good while it is small.
_BY_KEY = query_by(assignments, ["bigint", "text"], "t.experiment_id - w.a = 0 AND t.idempotency_key = w.b")
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
# A draw is an assignment and an event, both made of the same facts.
DRAW = insert_into(
    assignments,
    (
        events,
        {name: name for name in ("experiment_id", "sequence", "arm", "draw", "epoch", "reason", "expires_at", "expiry_reward")}
        | {"kind": "'draw'", "at": "created_at", "status_after": "status", "closed_after": "closed"},
    ),
    taken="SELECT FROM {rows} d CROSS JOIN assignments t "
    "WHERE t.experiment_id - d.experiment_id = 0 AND t.idempotency_key = d.idempotency_key",
)
_INSERT_ARMS = insert_into(arms)
_INSERT_BATCHES = insert_into(batches)
_INSERT_OBSERVATIONS = insert_into(observations)
_INSERT_REPLIES = insert_into(
    replies,
    taken="SELECT FROM {rows} d CROSS JOIN replies t "
    "WHERE t.experiment_id = d.experiment_id AND t.route = d.route AND t.key = d.key",
)
_INSERT_SNAPSHOTS = insert_into(snapshots)
# The stride has doubled: every second snapshot of those before goes.
_THIN_SNAPSHOTS = Write(
    experiments,
    (
        (
            "DELETE FROM snapshots WHERE (experiment_id, sequence) IN "
            "(SELECT s.experiment_id, s.sequence FROM {rows} AS v CROSS JOIN snapshots AS s "
            "WHERE s.experiment_id = v.id AND (s.sequence / (v.snapshot_stride / 2)) % 2 = 1) AND {allowed}"
        ),
    ),
)
# What an event says of its assignment, in the words of service/domain/assignment.py.
_TELL = insert_and_update(
    events,
    assignments,
    ("experiment_id", "draw"),
    {
        "status": "v.status_after",
        "reward": "v.reward_after",
        "closed": "v.closed_after",
        "rewarded_at": (
            "CASE WHEN v.kind IN ('reward', 'correction') THEN v.at WHEN v.status_after = 'rewarded' THEN t.rewarded_at END"
        ),
        "due_at": "CASE WHEN v.status_after = 'rewarded' AND NOT v.closed_after THEN t.expires_at END",
    },
)
_MOVE = update_of(assignments, ("experiment_id", "draw"), records.ASSIGNMENT_STATE)
_COUNT = update_of(arms, ("experiment_id", "position"), records.ARM_COUNTS)
_COUNT_DRAWS = update_of(arms, ("experiment_id", "position"), records.ARM_DRAWS)
_REDEFINE = update_of(arms, ("experiment_id", "position"), records.ARM_DEFINITION)
_PROGRESS = update_of(experiments, ("id",), records.PROGRESS, versioned=True)
_DRAW_ON = update_of(experiments, ("id",), records.DRAWING, versioned=True)
_SETTINGS = update_of(experiments, ("id",), records.SETTINGS)
# Always in the same order, so that the same writes are the same statement.
_FIRST = (
    DRAW,
    _TELL,
    _INSERT_EVENTS,
    _INSERT_BATCHES,
    _INSERT_OBSERVATIONS,
    _INSERT_REPLIES,
    _INSERT_SNAPSHOTS,
    _INSERT_ARMS,
    _COUNT,
    _COUNT_DRAWS,
    _PROGRESS,
)
_SECOND = (_MOVE, _REDEFINE, _THIN_SNAPSHOTS, _SETTINGS)
