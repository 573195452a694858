"""Delete: an experiment is gone for everybody at once, and its rows go in the background, a chunk a transaction.

Every worker looks once a second for experiments whose rows are not all gone. So a deletion goes on wherever it stopped, whatever
became of the worker that began it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.application.pauses import pause_after
from service.application.webhooks.hand_out import hand_out
from service.engine.clock import now_microseconds
from service.errors import IllegalTransition, InvalidValue, VersionConflict
from service.storage import experiment_copies, removal
from service.storage.queries import stored_experiments, stored_instance_log

if TYPE_CHECKING:
    from service.application.commands.experiments import Condition
    from service.application.context import Context
    from service.application.live.reader import WritingReader
    from service.domain import Json, Progress
    from service.domain.callers import Access
    from service.storage.database import Database

# A draft has no data that could be missed; an archived experiment was given up before.
_DELETABLE = ("draft", "archived")
# Some milliseconds of a transaction. On SQLite every writer waits for it.
_ROWS_AT_ONCE = 500
# After each chunk, as many times as long as it took.
_PAUSE = 4.0


async def delete(context: WritingReader, access: Access, confirmed: str, condition: Condition | None = None) -> None:
    """Answered when nobody can find it any more, and its key is free."""
    caller, key = access.caller, access.key
    caller.require("admin", key)
    if confirmed != key:
        raise InvalidValue("/query/confirm", f"To delete an experiment, repeat its key: `confirm` must be {key!r}.")
    async with context.database.writing() as connection:
        progress = await removal.locked(connection, key)
        if condition is not None and not condition(await stored_experiments.experiment_by_key(connection, key)):
            raise VersionConflict(f"Experiment {key!r} is not what it was any more: read it again.")
        status = progress.experiment.status
        if status not in _DELETABLE:
            raise IllegalTransition(f"Experiment {key!r} is {status}: only drafts and archived experiments can be deleted.")
        while await hand_out(connection, progress.experiment.id):  # what webhooks are still to be told of it is told
            pass
        await removal.mark(connection, progress)
        await stored_instance_log.append(connection, "experiment_deleted", _details(progress), now_microseconds(), caller)


def _details(progress: Progress) -> dict[str, Json]:
    """What people will want to know of it once it is gone."""
    experiment = progress.experiment
    return {
        "experiment": experiment.key,
        "name": experiment.name,
        "owner": experiment.owner,
        "status": experiment.status,
        "created_at": experiment.created_at,
        "draws": progress.draws,
        "version": progress.version,
    }


class Deleter:
    """Removes the rows of deleted experiments, and of those whose load was killed."""

    def __init__(self, context: Context) -> None:
        self._context = context

    async def remove_all(self) -> None:
        """Remove whatever is left of deleted experiments, but for those that another worker is at."""
        database, now = self._context.database, now_microseconds()
        async with database.reading() as connection:
            left = await removal.marked(connection)
            abandoned = await experiment_copies.are_abandoned(connection, now)
        if abandoned:
            async with database.writing() as connection:
                left = [*left, *await experiment_copies.give_up_abandoned(connection, now)]
        for experiment_id in left:
            await remove_rows(database, experiment_id)


async def remove_rows(database: Database, experiment_id: int) -> None:
    """Those of a deleted experiment, chunk by chunk with a pause after each, until none is left or another worker is at it."""
    place: removal.Place | None = removal.Place()
    while place is not None:
        async with pause_after(_PAUSE), database.writing() as connection:
            if not await removal.is_ours(connection, experiment_id):
                return
            place = await removal.remove_chunk(connection, experiment_id, place, _ROWS_AT_ONCE)
