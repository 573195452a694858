"""The writing side: find and lock experiments, write all changes of a group of requests at once, and tell whether they were.

Used by one transaction at a time per process (service/engine/writer.py). It is committed where it is
sent (`postgres.py`, `sqlite.py`).
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from service.storage import settings_rows, traffic_rows, updated_columns
from service.storage.groups.lookup_queries import BY_DRAW, REPLIES
from service.storage.groups.statements import Write, insert_and_update, insert_into, query_by, update_of
from service.storage.tables import (
    arms,
    assignments,
    batches,
    events,
    experiments,
    findings,
    observations,
    replies,
    snapshots,
    steps,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.domain import ArmRecord, Changes, Event, Progress
    from service.storage.groups.statements import Group, Groups, Guard, Reads, Stage

    Row = tuple[Any, ...]


async def lock(group: Group, keys: Sequence[str]) -> dict[str, Progress]:
    """Lock these experiments, in one order for all callers; those that exist, as they are under the lock."""
    return {row["key"]: settings_rows.progress_from(row) for row in await group.rows(_LOCK, keys)}


async def find(group: Reads, keys: Sequence[str]) -> dict[str, Progress]:
    """Those of the experiments that exist, without a lock."""
    return {row["key"]: settings_rows.progress_from(row) for row in await group.rows(_FIND, keys)}


async def locked_elsewhere(group: Reads, keys: Sequence[str]) -> set[str]:
    """Those of the experiments whose rows somebody else holds just now."""
    free = {row["key"] for row in await group.rows(_FREE, keys)}
    return {row["key"] for row in await group.rows(_FIND, keys)} - free


async def arms_since(group: Reads, versions: dict[int, int]) -> dict[int, list[ArmRecord]]:
    """The arms of these experiments that changed after these versions, by one statement; after version -1, all."""
    moved: dict[int, list[ArmRecord]] = {experiment_id: [] for experiment_id in versions}
    for row in await group.rows(_ARMS_SINCE, list(versions), list(versions.values())):
        moved[row["experiment_id"]].append(traffic_rows.arm_from(row))
    return moved


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
            rows[DRAW] += [traffic_rows.drawn_row(e, drawn) for drawn in one.drawn]
        _add_counts(rows, e, version, one)
        if one.steps:
            _add_steps(rows, e, one)
        if one.events:
            rows[_INSERT_EVENTS] += [traffic_rows.event_row(e, event) for event in one.events]
        if one.snapshots:
            rows[_INSERT_SNAPSHOTS] += [settings_rows.snapshot_row(e, snapshot) for snapshot in one.snapshots]
        if one.replies:
            rows[_INSERT_REPLIES] += [settings_rows.reply_row(e, reply) for reply in one.replies]
        rows[_PROGRESS].append(traffic_rows.progress_row(progress))
        if not one.is_plain():
            _add_the_rest(rows, e, one)
    first = [(write, rows[write]) for write in _FIRST if rows.get(write)]
    second = [(write, rows[write]) for write in _SECOND if rows.get(write)]
    return [first, second] if second else [first]


def _draws(one: Changes) -> Stage:
    """The rows of one experiment that was only asked: what the service does all day."""
    progress = one.progress
    e, version = progress.experiment.id, progress.version
    drawn = (DRAW, [traffic_rows.drawn_row(e, drawn) for drawn in one.drawn])
    draw_on = (_DRAW_ON, [traffic_rows.progress_row(progress)])
    stage = [drawn]
    if one.drawn_arms:
        stage.append((_COUNT_DRAWS, [traffic_rows.arm_draws_row(e, arm, version) for arm in one.drawn_arms]))
    if one.imputed_arms:
        stage.append((_COUNT_IMPUTED, [traffic_rows.arm_imputed_row(e, arm, version) for arm in one.imputed_arms]))
    return [*stage, draw_on]


def _add_the_rest(rows: defaultdict[Write, list[Row]], e: int, one: Changes) -> None:
    """What asks and tells do not do, or seldom."""
    rows[_INSERT_BATCHES] += [settings_rows.batch_row(e, batch) for batch in one.batches]
    rows[_INSERT_OBSERVATIONS] += [settings_rows.observation_row(e, named) for named in one.observations]
    rows[_CHANGE_OBSERVATIONS] += [settings_rows.observation_change_row(e, named) for named in one.changed_observations]
    rows[_INSERT_ARMS] += [settings_rows.arm_row(e, arm, one.progress.version) for arm in one.new_arms]
    rows[_RESTATE] += [traffic_rows.restated_row(e, moved) for moved in one.restated]
    rows[_REDEFINE] += [settings_rows.arm_definition_row(e, record.arm) for record in one.redefined]
    rows[_THIN_SNAPSHOTS] += [traffic_rows.progress_row(one.progress)] if one.thin else []
    rows[_SETTINGS] += [settings_rows.settings_row(one.progress.experiment)] if one.settings_changed else []
    rows[_END_FINDINGS] += {row: None for disturbed in one.disturbances for row in settings_rows.disturbance_rows(e, disturbed)}
    rows[_KEEP_FINDINGS] += [settings_rows.finding_row(e, finding) for finding in one.findings]


def _add_counts(rows: defaultdict[Write, list[Row]], e: int, version: int, one: Changes) -> None:
    """Of each arm as many columns as moved."""
    if one.drawn_arms:
        rows[_COUNT_DRAWS] += [traffic_rows.arm_draws_row(e, arm, version) for arm in one.drawn_arms]
    if one.imputed_arms:
        rows[_COUNT_IMPUTED] += [traffic_rows.arm_imputed_row(e, arm, version) for arm in one.imputed_arms]
    if one.arms:
        rows[_COUNT] += [traffic_rows.arm_count_row(e, arm, version) for arm in one.arms]


def _add_steps(rows: defaultdict[Write, list[Row]], e: int, one: Changes) -> None:
    """Each is an event and changes its assignment, unless that is restated as a whole: then it is an event only."""
    if not one.restated:
        rows[_STEP] += [traffic_rows.step_row(e, step) for step in one.steps]
        return
    restated = {assignment.draw for assignment in one.restated}
    for step in one.steps:
        if step.assignment.draw in restated:
            rows[_INSERT_EVENTS].append(traffic_rows.event_row(e, step.event))
        else:
            rows[_STEP].append(traffic_rows.step_row(e, step))


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
            rows = await group.rows(BY_DRAW, [one.progress.experiment.id], [one.drawn[0].draw])
            return bool(rows) and rows[0]["token"] == one.drawn[0].token
    for one in changed:
        e = one.progress.experiment.id
        made = sorted(one.all_events(), key=_sequence_of)
        stored = await group.rows(_EVENT, [e] * len(made), [event.sequence for event in made]) if made else []
        if sorted((traffic_rows.event_from(row) for row in stored), key=_sequence_of) != made:
            return False
        for reply in one.replies:
            rows = await group.rows(REPLIES, [e], [reply.route], [reply.key])
            if not rows or settings_rows.reply_from(rows[0]) != reply:
                return False
    return True


def _sequence_of(event: Event) -> int:
    return event.sequence


_FIND = query_by(experiments, ["text"], "t.key = w.a")
_VERSIONS = query_by(experiments, ["bigint"], "t.id = w.a", columns=("id", "version"))
_LOCK = query_by(experiments, ["text"], "t.key = w.a", tail="ORDER BY t.id", locking="FOR NO KEY UPDATE OF t")
_FREE = query_by(experiments, ["text"], "t.key = w.a", columns=("key",), locking="FOR NO KEY UPDATE OF t SKIP LOCKED")
_ARMS_SINCE = query_by(arms, ["bigint", "bigint"], "t.experiment_id = w.a AND t.changed > w.b", tail="ORDER BY t.position")
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
_CHANGE_OBSERVATIONS = update_of(observations, ("experiment_id", "id"), updated_columns.OBSERVATION_STATE)
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
# What Disturbance.ends of service/domain/findings.py says; replay compares the two.
_END_FINDINGS = Write(
    findings,
    (
        (
            "DELETE FROM findings WHERE (experiment_id, kind, arm) IN "
            "(SELECT f.experiment_id, f.kind, f.arm FROM {rows} AS v CROSS JOIN findings AS f "
            "WHERE f.experiment_id = v.experiment_id AND (v.kind = '' OR v.kind = f.kind) "
            "AND (v.arm < 0 OR f.worse IS NULL OR v.arm = f.better OR v.arm = f.worse)) AND {allowed}"
        ),
    ),
)
# The first finding of a kind about an arm stays.
_KEEP_FINDINGS = Write(findings, tuple(f"{statement} ON CONFLICT DO NOTHING" for statement in insert_into(findings).statements))
# A step is an event and changes its assignment.
_STEP = insert_and_update(
    steps,
    events,
    assignments,
    ("experiment_id", "draw"),
    {
        "status": "v.status_after",
        "reward": "v.reward_after",
        "closed": "v.closed_after",
        "rewarded_at": "v.rewarded_at",
        "due_at": "v.due_at",
    },
)
_RESTATE = update_of(assignments, ("experiment_id", "draw"), updated_columns.ASSIGNMENT_STATE)
_COUNT = update_of(arms, ("experiment_id", "position"), updated_columns.ARM_COUNTS)
_COUNT_DRAWS = update_of(arms, ("experiment_id", "position"), updated_columns.ARM_DRAWS)
_COUNT_IMPUTED = update_of(arms, ("experiment_id", "position"), updated_columns.ARM_IMPUTED)
_REDEFINE = update_of(arms, ("experiment_id", "position"), updated_columns.ARM_DEFINITION)
_PROGRESS = update_of(experiments, ("id",), (*updated_columns.PROGRESS, *updated_columns.LATER_PROGRESS), versioned=True)
_DRAW_ON = update_of(experiments, ("id",), updated_columns.DRAWING, versioned=True)
_SETTINGS = update_of(experiments, ("id",), (*updated_columns.SETTINGS, *updated_columns.LATER_SETTINGS))
# Always in the same order, so that the same writes are the same statement.
_FIRST = (
    DRAW,
    _STEP,
    _INSERT_EVENTS,
    _INSERT_BATCHES,
    _INSERT_OBSERVATIONS,
    _INSERT_REPLIES,
    _INSERT_SNAPSHOTS,
    _INSERT_ARMS,
    _END_FINDINGS,
    _COUNT,
    _COUNT_DRAWS,
    _COUNT_IMPUTED,
    _PROGRESS,
)
_SECOND = (_RESTATE, _CHANGE_OBSERVATIONS, _REDEFINE, _THIN_SNAPSHOTS, _SETTINGS, _KEEP_FINDINGS)
