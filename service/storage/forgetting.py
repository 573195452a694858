"""A unit's name, replaced by a token wherever it is stored.

The token says nothing of the name: it is made of the random bits that the unit's first draw was stored with. Rows are changed
from the last draw to the first, and that one goes with the event that says so, in one transaction: until then the name is found
again by whoever goes on, and so is the token.
"""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import String, case, cast, exists, func, literal, or_, select, text, update

from service.domain.limits import LONGEST_IDEMPOTENCY_KEY
from service.errors import ExperimentNotFound
from service.randomness import random_63_bits
from service.storage import operator_events, removal, settings_rows, traffic_rows
from service.storage.database_url import async_url
from service.storage.tables import AUDITED_ONLY, HIDDEN, assignments, events, experiments, observations, replies

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection

    from sqlalchemy import ColumnElement, TextClause
    from sqlalchemy.ext.asyncio import AsyncConnection

    from service.domain import StoredReply

_REPLIES_AT_ONCE = 100
_CHECKPOINT_SECONDS = 0.25


class NamedUnit(NamedTuple):
    """A unit in one experiment, under the key that this has now."""

    experiment_id: int
    key: str
    unit: str


async def experiments_with(connection: AsyncConnection, unit: str, key: str | None) -> list[NamedUnit]:
    """The experiments in which the name stands, for a unit or for an observation; this one, or all."""
    drawn = exists().where(assignments.c.experiment_id == experiments.c.id, assignments.c.unit == unit)
    observed = exists().where(observations.c.experiment_id == experiments.c.id, observations.c.id == unit)
    changed = exists().where(events.c.experiment_id == experiments.c.id, *_changes_of_observation(unit))
    wanted = select(experiments.c.id, experiments.c.key).where(experiments.c.status.not_in(HIDDEN), or_(drawn, observed, changed))
    if key is not None:
        wanted = wanted.where(experiments.c.key == key)
    found = (await connection.execute(wanted.order_by(experiments.c.id))).all()
    return [NamedUnit(experiment_id, named, unit) for experiment_id, named in found]


async def draws_of(connection: AsyncConnection, named: NamedUnit) -> dict[int, int]:
    """The draws of the unit, each with its random bits, from the first to the last."""
    wanted = select(assignments.c.draw, assignments.c.token).where(*_drawn_by(named)).order_by(assignments.c.draw)
    found = await connection.execute(wanted)
    return {row.draw: row.token for row in found}


def token_for(named: NamedUnit, draws: dict[int, int]) -> str:
    """What takes the name's place in this experiment. An observation has no random bits of its own and gets new ones."""
    bits = f"{named.experiment_id} {next(iter(draws.items()))}" if draws else str(random_63_bits())
    return f"forgotten-{hashlib.sha256(bits.encode()).hexdigest()[:24]}"


async def replace_draws(connection: AsyncConnection, named: NamedUnit, token: str, draws: Collection[int]) -> None:
    """Of these draws the unit, and what of it stands in their idempotency keys; a key that got too long becomes another one."""
    replaced = func.replace(assignments.c.idempotency_key, named.unit, token)
    other = literal(f"{token}-") + cast(assignments.c.draw, String)
    key = case((func.length(replaced) > LONGEST_IDEMPOTENCY_KEY, other), else_=replaced)
    ours = update(assignments).where(*_drawn_by(named), assignments.c.draw.in_(draws))
    await connection.execute(ours.values(unit=token, idempotency_key=key))


async def replace_last(connection: AsyncConnection, named: NamedUnit, token: str, most: int, now: int) -> int | None:
    """Replace the draws that are left, and an observation of that name, and write it down; how many draws have the token.

    None if more than so many draws are left. Under the lock, so that no draw comes in between; from then on no worker relies on
    what it remembers of the experiment.
    """
    try:
        progress = await removal.locked(connection, named.key)
    except ExperimentNotFound:  # it was deleted meanwhile
        return 0
    if progress.experiment.id != named.experiment_id:
        return 0
    draws = await draws_of(connection, named)
    if len(draws) > most:
        return None
    await replace_draws(connection, named, token, draws)
    observed = await _replace_observation(connection, named, token)
    counted = select(func.count()).where(assignments.c.experiment_id == named.experiment_id, assignments.c.unit == token)
    number = int((await connection.execute(counted)).scalar_one())
    details = {"assignments": number, "observations": observed}
    await operator_events.append(connection, progress, "forgotten", {**details}, now)
    return number


async def _replace_observation(connection: AsyncConnection, named: NamedUnit, token: str) -> int:
    """The id of an observation, there and in the events that changed it, which stay when it is pruned."""
    ours = observations.c.experiment_id == named.experiment_id, observations.c.id == named.unit
    renamed = (await connection.execute(update(observations).where(*ours).values(id=token))).rowcount
    changes = events.c.experiment_id == named.experiment_id, *_changes_of_observation(named.unit)
    for row in (await connection.execute(select(events).where(*changes))).mappings().all():
        told = traffic_rows.event_from(row)
        if told.details is not None and told.details.get("observation") == named.unit:
            renamed, details = 1, traffic_rows.to_json(told.details | {"observation": token})
            one = events.c.experiment_id == named.experiment_id, events.c.sequence == told.sequence
            await connection.execute(update(events).where(*one).values(details=details))
    return renamed


def _changes_of_observation(name: str) -> tuple[ColumnElement[bool] | TextClause, ...]:
    """The events that changed an observation of this name, and perhaps some of names that differ in capitals only."""
    said = traffic_rows.to_json({"observation": name})[1:-1]
    return text(AUDITED_ONLY), events.c.kind.like("observation%"), events.c.details.contains(said, autoescape=True)


async def all_replies(connection: AsyncConnection, experiment_id: int | None) -> AsyncIterator[tuple[int, StoredReply]]:
    """Every stored answer with the experiment that it is of; of this one, or of all."""
    wanted = select(replies).where(replies.c.experiment_id > 0)
    if experiment_id is not None:
        wanted = wanted.where(replies.c.experiment_id == experiment_id)
    found = await connection.stream(wanted, execution_options={"yield_per": _REPLIES_AT_ONCE})
    async for rows in found.mappings().partitions(_REPLIES_AT_ONCE):
        for row in rows:
            yield row["experiment_id"], settings_rows.reply_from(row)


async def blank_reply(connection: AsyncConnection, experiment_id: int, reply: StoredReply, key: str, body: bytes) -> None:
    """Keep that an idempotency key was used, and nothing of what for: no body has the empty hash, so each is refused."""
    ours = replies.c.experiment_id == experiment_id, replies.c.route == reply.route, replies.c.key == reply.key
    await connection.execute(update(replies).where(*ours).values(key=key, body_hash="", body=body))


async def begin_erasing(connection: AsyncConnection) -> None:
    """What this connection deletes or replaces from now on is overwritten in the file of an embedded database."""
    if connection.dialect.name == "sqlite":
        await connection.exec_driver_sql("PRAGMA secure_delete=ON")


def is_log_emptied(url: str) -> bool:
    """Empty an embedded database's write-ahead log, which has the pages as they were before; False if somebody reads it."""
    parsed = async_url(url)
    if parsed.get_backend_name() != "sqlite" or not parsed.database:
        return True
    # While it waits for readers it keeps all writers waiting: so it waits for a moment, and whoever calls tries again.
    with closing(sqlite3.connect(parsed.database, timeout=_CHECKPOINT_SECONDS, isolation_level=None)) as opened:
        busy, *_ = opened.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return not busy


def _drawn_by(named: NamedUnit) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return assignments.c.experiment_id == named.experiment_id, assignments.c.unit == named.unit
