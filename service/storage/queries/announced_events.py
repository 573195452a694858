"""What webhooks are told of: experiments with news, the events behind a cursor, and the last notices of a history."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import insert, or_, select, text, update

from service.domain import Arm
from service.domain.limits import MOST_EVENTS_AT_ONCE
from service.domain.notices import Noticed
from service.storage import settings_rows, traffic_rows
from service.storage.tables import ANNOUNCED_ONLY, HIDDEN, arms, events, experiments
from service.storage.webhook_tables import webhook_cursors

if TYPE_CHECKING:
    from collections.abc import Collection

    from sqlalchemy.ext.asyncio import AsyncConnection

    from service.domain import Event, Experiment, Progress

_FIRST = text("INSERT INTO webhook_cursors (experiment_id, sequence) VALUES (:experiment, 0) ON CONFLICT DO NOTHING")


class News(NamedTuple):
    """An experiment to which something happened that may be told."""

    experiment: int
    key: str


async def news_since(connection: AsyncConnection, since: int) -> list[News]:
    """Experiments with events after this time that were not handed out. By their own times, which the workers' clocks gave."""
    behind = or_(webhook_cursors.c.sequence.is_(None), events.c.sequence > webhook_cursors.c.sequence)
    wanted = (
        select(experiments.c.id, experiments.c.key)
        .distinct()
        .select_from(
            events.join(experiments, experiments.c.id == events.c.experiment_id).outerjoin(
                webhook_cursors, webhook_cursors.c.experiment_id == events.c.experiment_id
            )
        )
        .where(text(ANNOUNCED_ONLY), events.c.at > since, experiments.c.status.not_in(HIDDEN), behind)
    )
    return [News(*row) for row in await connection.execute(wanted)]


async def held_cursor(connection: AsyncConnection, experiment_id: int) -> tuple[Experiment, int] | None:
    """The experiment, and up to which event it was handed out; nobody else hands it out until this transaction ends.

    None if it is deleted. Its traffic goes on meanwhile.
    """
    there = select(experiments).where(experiments.c.id == experiment_id, experiments.c.status.not_in(HIDDEN))
    row = (await connection.execute(there.with_for_update(read=True, key_share=True))).mappings().first()
    if row is None:
        return None
    await connection.execute(_FIRST, {"experiment": experiment_id})
    cursor = select(webhook_cursors.c.sequence).where(webhook_cursors.c.experiment_id == experiment_id)
    sequence: int = (await connection.execute(cursor.with_for_update())).scalar_one()
    return settings_rows.progress_from(row).experiment, sequence


async def begin_behind(connection: AsyncConnection, experiment_id: int, sequence: int) -> None:
    """An experiment that was not here before: what has happened to it elsewhere, up to this event, is no news."""
    await connection.execute(insert(webhook_cursors).values(experiment_id=experiment_id, sequence=sequence))


async def move_cursor(connection: AsyncConnection, experiment_id: int, sequence: int) -> None:
    """Everything up to this event was handed out."""
    moved = update(webhook_cursors).where(webhook_cursors.c.experiment_id == experiment_id)
    await connection.execute(moved.values(sequence=sequence))


async def announced_after(connection: AsyncConnection, experiment_id: int, sequence: int, since: int) -> list[Event]:
    """The next events behind a cursor, and from this time on, oldest first; of the kinds of which some are told."""
    wanted = (
        select(events)
        .where(events.c.experiment_id == experiment_id, text(ANNOUNCED_ONLY), events.c.sequence > sequence, events.c.at >= since)
        .order_by(events.c.sequence)
        .limit(MOST_EVENTS_AT_ONCE)
    )
    return [traffic_rows.event_from(row) for row in (await connection.execute(wanted)).mappings()]


async def named_arms(connection: AsyncConnection, experiment_id: int, positions: Collection[int]) -> dict[int, Arm]:
    """The arms at these positions without their values, which may be large."""
    columns = arms.c.position, arms.c.key, arms.c.name, arms.c.min_share, arms.c.status
    wanted = select(*columns).where(arms.c.experiment_id == experiment_id, arms.c.position.in_(positions))
    found = await connection.execute(wanted)
    return {position: Arm(position, key, name, None, least, status) for position, key, name, least, status in found}


async def last_notices(connection: AsyncConnection, progress: Progress) -> Noticed:
    """What was last noted of an experiment, from the few events that are told."""
    of_kind = (
        select(events)
        .where(events.c.experiment_id == progress.experiment.id, text(ANNOUNCED_ONLY))
        .order_by(events.c.sequence.desc())
    )
    leader = (await connection.execute(of_kind.where(events.c.kind == "leader_changed").limit(1))).mappings().first()
    since = progress.version // 2
    drifts = (await connection.execute(of_kind.where(events.c.kind == "drift_noticed", events.c.sequence > since))).mappings()
    noted = [(row["at"], json.loads(row["details"])["drifting"]) for row in drifts]
    began = progress.experiment.created_at
    return Noticed(
        leader=None if leader is None else leader["arm"],
        leader_sequence=1 if leader is None else leader["sequence"],
        leader_at=began if leader is None else leader["at"],
        drift_at=noted[0][0] if noted else began,
        drifting=frozenset(arm for _, drifting in noted for arm in drifting),
        is_first=leader is None,
    )
