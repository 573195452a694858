"""What an experiment that is over gives up: every single draw, reward and observation. What was counted and done by people stays.

Marked, it takes no more data, and cannot be reopened: what is left of it can change no more. Its rows go chunk by chunk from then
on, and each chunk says in `prunings` how far it came, so that whoever goes on begins there.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import ColumnElement, Table, delete, exists, func, insert, select, text, update

from service.domain import UNAUDITED, fingerprint_of
from service.storage import operator_events, removal, traffic_rows
from service.storage.tables import (
    AUDITED_ONLY,
    HIDDEN,
    assignments,
    batches,
    events,
    experiments,
    observations,
    prunings,
    replies,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from sqlalchemy.ext.asyncio import AsyncConnection

    from service.domain import ArmRecord, Json, Progress

# What goes, in this order: stored answers first, because they are told again from the draws that they name.
_PARTS: dict[str, tuple[Table, tuple[ColumnElement[bool], ...]]] = {
    "replies": (replies, ()),
    "assignments": (assignments, ()),
    "observations": (observations, ()),
    "batches": (batches, ()),
    "events": (events, (events.c.kind.in_(UNAUDITED),)),
}
# What a row takes on the disk, with its part of the indexes (docs/retention.md).
_BYTES = {
    "sqlite": {"assignments": 150, "events": 85},
    "postgresql": {"assignments": 450, "events": 175},
}
_BYTES_OF_OTHERS = 200


class Prunable(NamedTuple):
    """An experiment that may be pruned: which, under which key, when it ended, and is it being pruned already?"""

    id: int
    key: str
    ended_at: int
    under_way: bool


class Chunk(NamedTuple):
    """Rows of one table that go together, and from where the pruning goes on afterwards."""

    experiment_id: int
    place: tuple[str, str | None]
    """How far it had come when they were read: if it is further, somebody else has removed them."""
    table: str | None
    """None where no row is left to go."""
    behind: tuple[Any, ...] | None
    until: tuple[Any, ...] | None
    rows: int
    removed_before: int


async def prunable(connection: AsyncConnection, ended_before: int, keys: Collection[str] | None) -> list[Prunable]:
    """Those that ended before this time, and those whose pruning was interrupted; of these keys, or of all."""
    begun = exists().where(prunings.c.experiment_id == experiments.c.id)
    over = experiments.c.status.in_(("concluded", "archived")) & experiments.c.pruned_at.is_(None)
    over &= experiments.c.created_at < ended_before
    wanted = select(experiments.c.id, experiments.c.key, begun).where(experiments.c.status.not_in(HIDDEN), over | begun)
    if keys is not None:
        wanted = wanted.where(experiments.c.key.in_(keys))
    found = []
    for experiment_id, key, under_way in (await connection.execute(wanted.order_by(experiments.c.id))).all():
        ended_at = await ended(connection, experiment_id)
        if ended_at is not None and (under_way or ended_at < ended_before):
            found.append(Prunable(experiment_id, key, ended_at, bool(under_way)))
    return found


async def ended(connection: AsyncConnection, experiment_id: int) -> int | None:
    """When it was last concluded; None if it never was."""
    moves = select(events).where(events.c.experiment_id == experiment_id, text(AUDITED_ONLY), events.c.kind == "lifecycle")
    for row in (await connection.execute(moves.order_by(events.c.sequence.desc()))).mappings():
        event = traffic_rows.event_from(row)
        after = (event.details or {}).get("after")
        if isinstance(after, dict) and after.get("status") == "concluded":
            return event.at
    return None


async def rows_to_go(connection: AsyncConnection, experiment_id: int) -> dict[str, int]:
    """How many rows of each table would go."""
    counted = {}
    for name, (table, only) in _PARTS.items():
        number = select(func.count()).select_from(table).where(table.c.experiment_id == experiment_id, *only)
        counted[name] = int((await connection.execute(number)).scalar_one())
    return counted


def about_bytes(rows: dict[str, int], dialect: str) -> int:
    """What so many rows take on the disk, about."""
    known = _BYTES[dialect]
    return sum(number * known.get(name, _BYTES_OF_OTHERS) for name, number in rows.items())


async def has_traffic(connection: AsyncConnection, experiment_id: int) -> bool:
    """Is any draw, reward or observation there? Answers to idempotency keys are stored again while its arm is served."""
    for name, (table, only) in _PARTS.items():
        if name == replies.name:
            continue
        there = select(table.c.experiment_id).where(table.c.experiment_id == experiment_id, *only).limit(1)
        if (await connection.execute(there)).first() is not None:
            return True
    return False


async def is_under_way(connection: AsyncConnection, experiment_id: int) -> bool:
    """Was it marked, and is not all of it gone?"""
    place = select(prunings.c.experiment_id).where(prunings.c.experiment_id == experiment_id)
    return (await connection.execute(place)).first() is not None


async def mark(connection: AsyncConnection, progress: Progress, records: Sequence[ArmRecord], now: int) -> None:
    """From now on nothing about its data can change. The transaction holds the experiment's lock, and these are its arms."""
    details: dict[str, Json] = {"before": {"pruned_at": None}, "after": {"pruned_at": now}}
    details |= {"draws": progress.draws, "statistics": fingerprint_of(records)}
    await operator_events.append(connection, progress, "pruned", details, now, pruned_at=now)
    first = next(iter(_PARTS))
    await connection.execute(insert(prunings).values(experiment_id=progress.experiment.id, table_name=first, removed=0))


async def next_chunk(connection: AsyncConnection, experiment_id: int, limit: int) -> Chunk | None:
    """The rows that go next, at most so many of one table; None if it is not being pruned, or not any more.

    Read before the transaction that removes them: nobody adds any, so all that a lock is held for is to remove them.
    """
    left = select(prunings).where(prunings.c.experiment_id == experiment_id)
    place = (await connection.execute(left)).mappings().first()
    if place is None:
        return None
    names, at = list(_PARTS), (place["table_name"], place["last_row"])
    last = None if place["last_row"] is None else tuple(json.loads(place["last_row"]))
    for name in names[names.index(place["table_name"]) :]:
        table, only = _PARTS[name]
        found = await removal.next_rows(connection, table, experiment_id, last, limit, only=only)
        if found:
            return Chunk(experiment_id, at, name, last, found[-1], len(found), place["removed"])
        last = None
    return Chunk(experiment_id, at, None, None, None, 0, place["removed"])


async def remove(connection: AsyncConnection, chunk: Chunk) -> bool:
    """Remove these rows, or what is left of the pruning itself if there are none; False if somebody else has done it."""
    name, last = chunk.place
    ours = (
        prunings.c.experiment_id == chunk.experiment_id,
        prunings.c.table_name == name,
        prunings.c.last_row.is_(None) if last is None else prunings.c.last_row == last,
    )
    if chunk.table is None or chunk.until is None:
        return (await connection.execute(delete(prunings).where(*ours))).rowcount == 1
    reached = {"table_name": chunk.table, "last_row": json.dumps(chunk.until), "removed": chunk.removed_before + chunk.rows}
    if (await connection.execute(update(prunings).where(*ours).values(reached))).rowcount != 1:
        return False
    table, only = _PARTS[chunk.table]
    await removal.remove_range(connection, table, chunk.experiment_id, chunk.behind, chunk.until, only=only)
    return True
