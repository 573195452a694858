"""A new experiment: its row, its arms, the first event of its history and the answer to repeat, in one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import insert
from sqlalchemy.exc import IntegrityError

from service.errors import ExperimentExists
from service.storage import settings_rows, traffic_rows
from service.storage.queries import stored_replies
from service.storage.tables import arms, events, experiments

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
    await connection.execute(insert(arms), traffic_rows.by_column(arms, arm_rows))
    await connection.execute(insert(events), traffic_rows.by_column(events, [traffic_rows.event_row(experiment_id, created)]))
    if reply:
        await stored_replies.insert_reply(connection, replies_of, reply)
