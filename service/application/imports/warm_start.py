"""A warm start: an experiment that is made of past data. Its first event says of which, so that it is made once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.application.commands import experiments
from service.application.commands.idempotency import Once
from service.domain.callers import SERVICE
from service.errors import ExperimentExists, ExperimentNotFound, InvalidValue
from service.storage.queries import stored_experiments, stored_history

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.application.commands.experiments import Described
    from service.application.live.reader import WritingReader
    from service.domain import Arm, Experiment
    from service.storage.database import Database

_NOTE = "warm_start"


async def create_from(worker: WritingReader, experiment: Experiment, arms: Sequence[Arm], digest: str) -> None:
    """Create the experiment, before anything of the file with this digest is told to it."""
    once: Once[Described] = Once("experiments", None, "", creates=True, render=lambda _: b"")
    await experiments.create(worker, SERVICE, experiment, arms, once, notes={_NOTE: digest})


def require_live(experiment: Experiment) -> None:
    """A draft takes no data."""
    if experiment.status == "draft":
        raise InvalidValue("/status", "A draft takes no data: leave `status` out, and pause the experiment once it is there.")


async def was_made_of(database: Database, key: str, digest: str) -> bool:
    """Is there an experiment with this key? Refused if there is, and it was made of something else."""
    async with database.reading() as connection:
        try:
            progress = await stored_experiments.progress_by_key(connection, key)
        except ExperimentNotFound:
            return False
        created = await stored_history.page_of_events(connection, progress.experiment.id, range(1, 2), 1)
    if not created or (created[0].details or {}).get(_NOTE) != digest:
        raise ExperimentExists(key)
    return True
