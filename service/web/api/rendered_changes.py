"""Changes that may take long, from the request's own words to the bytes that are sent: a large one is made by a lane's process.

The worker's event loop would stand still for as long as ten thousand draws are decided, or eight megabytes of values are written.
So what is known beforehand to be large is changed by the writer of the lane's process, like by another worker.
Nothing of FastAPI is imported here, because every such process would hold it in memory.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from service.application.commands import arms, ask, delete, duplicate, experiments, lifecycle, tell
from service.application.commands.arms import ChangeArm
from service.application.commands.experiments import Patch
from service.application.commands.idempotency import Rendered
from service.application.reads import experiment_descriptions
from service.domain.limits import FEW_ARMS, LARGE_VALUES_BYTES, MOST_QUICK_BATCH, MOST_QUICK_ITEMS
from service.web.api import rendered_experiments
from service.web.api.content_etags import arm_etag, etag_of_content, etag_of_experiment, experiment_etag, meets

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from service.application.commands.ask import AskAnswer
    from service.application.commands.experiments import Described
    from service.application.commands.idempotency import Once
    from service.application.commands.lifecycle import LifecycleMove
    from service.application.commands.tell import Observe, TellMany, TellResult
    from service.application.context import Context
    from service.application.live.reader import WritingReader
    from service.domain import Arm, ArmRecord, Experiment
    from service.domain.callers import Access, Caller


@dataclass(frozen=True, slots=True)
class Changed:
    """The answer to a change, and the ETag of what it shows."""

    rendered: Rendered
    etag: str


async def _performed(
    context: Context,
    access: Access,
    change: Callable[..., Awaitable[Any]],
    *arguments: object,
) -> Any:  # noqa: ANN401 - what the change gives
    """Make a change of the whole experiment here, or in the lane if that is large."""
    if (await experiment_descriptions.size_of(context, access.key)).is_large:
        return await context.lanes.changes.run(access.caller, change, access, *arguments)
    return await change(context, access, *arguments)


def _changed(rendered: Rendered, etag_of: Callable[[bytes], str]) -> Changed:
    written = rendered.written()
    return Changed(replace(rendered, body=written), etag_of(written))


# -- what the routes call -----------------------------------------------------------------------------------------------------


async def create_experiment(
    context: Context, caller: Caller, experiment: Experiment, members: list[Arm], once: Once[Described], *, body_bytes: int
) -> Changed:
    """A new experiment, from a body of this size."""
    if len(members) > FEW_ARMS or body_bytes > LARGE_VALUES_BYTES:
        return await context.lanes.changes.run(caller, _create, caller, experiment, members, once)
    return await _create(context, caller, experiment, members, once)


async def duplicate_experiment(context: Context, source: Access, key: str, once: Once[Described]) -> Changed:
    """A draft like another experiment."""
    made: Changed = await _performed(context, source, _duplicate, key, once)
    return made


async def patch_experiment(context: Context, access: Access, fields: dict[str, Any], if_match: str | None) -> Changed:
    """An experiment with other settings."""
    changed: Changed = await _performed(context, access, _patch, fields, if_match)
    return changed


async def move_experiment(context: Context, access: Access, move: LifecycleMove, once: Once[Described]) -> Changed:
    """An experiment after a move of its life."""
    moved: Changed = await _performed(context, access, _move, move, once)
    return moved


async def delete_experiment(context: Context, access: Access, confirmed: str, if_match: str | None) -> None:
    """An experiment is gone; only one that the caller has seen has to be read for that."""
    if if_match is None:
        await delete.delete(context, access, confirmed)
    else:
        await _performed(context, access, _delete, confirmed, if_match)


async def add_arm(context: Context, access: Access, arm: Arm, once: Once[ArmRecord]) -> Changed:
    """A new arm."""
    added: Changed = await _performed(context, access, _add_arm, arm, once)
    return added


async def patch_arm(context: Context, access: Access, arm: str, fields: dict[str, Any], if_match: str | None) -> Changed:
    """An arm with another name, value, floor or status."""
    changed: Changed = await _performed(context, access, _patch_arm, arm, fields, if_match)
    return changed


async def ask_many(
    context: Context, access: Access, units: Sequence[str | None], once: Once[list[AskAnswer]], *, by_count: bool
) -> Rendered:
    """The assignments of a batch."""
    quick = len(units) * FEW_ARMS <= MOST_QUICK_BATCH
    if quick:
        arms_there = context.writer.known_arms(access.key) or (await experiment_descriptions.size_of(context, access.key)).arms
        quick = len(units) * (FEW_ARMS + arms_there) <= MOST_QUICK_BATCH
    if quick:
        return await _ask_many(context, access, units, once, by_count)
    return await context.lanes.changes.run(access.caller, _ask_many, access, units, once, by_count)


async def tell_many(context: Context, access: Access, command: TellMany | Observe, once: Once[list[TellResult]]) -> Rendered:
    """The outcomes of a batch of rewards or observations."""
    if command.weight <= MOST_QUICK_ITEMS:
        return await _tell_many(context, access, command, once)
    return await context.lanes.changes.run(access.caller, _tell_many, access, command, once)


# -- what is performed, here or in the lane -----------------------------------------------------------------------------------


async def _create(
    worker: WritingReader, caller: Caller, experiment: Experiment, members: list[Arm], once: Once[Described]
) -> Changed:
    return _changed(await experiments.create(worker, caller, experiment, members, once), experiment_etag)


async def _duplicate(worker: WritingReader, source: Access, key: str, once: Once[Described]) -> Changed:
    return _changed(await duplicate.duplicate(worker, source, key, once), experiment_etag)


async def _patch(worker: WritingReader, access: Access, fields: dict[str, Any], if_match: str | None) -> Changed:
    unchanged = None if if_match is None else lambda described: meets(if_match, etag_of_experiment(described))
    described = await experiments.change(worker, access, Patch(fields, unchanged))
    return _changed(Rendered(created=False, body=rendered_experiments.encode_experiment(described)), experiment_etag)


async def _delete(worker: WritingReader, access: Access, confirmed: str, if_match: str) -> None:
    await delete.delete(worker, access, confirmed, lambda described: meets(if_match, etag_of_experiment(described)))


async def _move(worker: WritingReader, access: Access, move: LifecycleMove, once: Once[Described]) -> Changed:
    return _changed(await lifecycle.make_move(worker, access, move, once), experiment_etag)


async def _add_arm(worker: WritingReader, access: Access, arm: Arm, once: Once[ArmRecord]) -> Changed:
    return _changed(await arms.add_arm(worker, access, arm, once), etag_of_content)


async def _patch_arm(worker: WritingReader, access: Access, arm: str, fields: dict[str, Any], if_match: str | None) -> Changed:
    def unchanged(described: Described, found: Arm) -> bool:
        return meets(if_match or "", arm_etag(found), etag_of_experiment(described))

    changed = await arms.change_arm(worker, access, ChangeArm(arm, fields, unchanged if if_match is not None else None))
    return _changed(Rendered(created=False, body=rendered_experiments.encode_arm(changed)), etag_of_content)


async def _ask_many(
    worker: WritingReader,
    access: Access,
    units: Sequence[str | None],
    once: Once[list[AskAnswer]],
    by_count: bool,  # noqa: FBT001 - lanes pass by position
) -> Rendered:
    rendered = await ask.ask_many(worker, access, units, once, by_count=by_count)
    return replace(rendered, body=rendered.written())


async def _tell_many(
    worker: WritingReader, access: Access, command: TellMany | Observe, once: Once[list[TellResult]]
) -> Rendered:
    rendered = await tell.tell_many(worker, access, command, once)
    return replace(rendered, body=rendered.written())
