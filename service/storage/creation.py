"""A new experiment: its row, its arms, the first event of its history and the answer to repeat, in one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import Table, insert
from sqlalchemy.exc import IntegrityError

from service.errors import ExperimentExists, IdempotencyKeyReused
from service.storage import settings_rows, traffic_rows
from service.storage.tables import arms, events, experiments, replies

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from service.domain import ArmRecord, Event, Progress, StoredReply


async def insert_experiment(
    connection: AsyncConnection,
    progress: Progress,
    members: list[ArmRecord],
    created: Event,
    reply: StoredReply | None,
    *,
    replies_of: int,
) -> None:
    """Store it; the key is guarded by the database. The answer to repeat is kept with the replies of this experiment."""
    try:
        new_row = insert(experiments).values(settings_rows.new_experiment_values(progress)).returning(experiments.c.id)
        experiment_id = (await connection.execute(new_row)).scalar_one()
    except IntegrityError as taken:
        raise ExperimentExists(progress.experiment.key) from taken
    arm_rows = [settings_rows.arm_row(experiment_id, arm, progress.version) for arm in members]
    await connection.execute(insert(arms), _by_column(arms, arm_rows))
    await connection.execute(insert(events), _by_column(events, [traffic_rows.event_row(experiment_id, created)]))
    if reply:
        try:
            await connection.execute(insert(replies), _by_column(replies, [settings_rows.reply_row(replies_of, reply)]))
        except IntegrityError as taken:  # by a request for another experiment that ran at the same time
            raise IdempotencyKeyReused("This Idempotency-Key was used before with another body.") from taken


def _by_column(table: Table, rows: list[tuple[Any, ...]]) -> list[dict[str, Any]]:
    return [dict(zip(table.columns.keys(), row, strict=True)) for row in rows]
