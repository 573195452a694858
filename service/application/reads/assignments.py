"""Assignments, one or a page of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.application.reads.time_window import ALWAYS, TimeWindow
from service.domain import parse_assignment_id
from service.errors import ArmNotFound, AssignmentNotFound
from service.storage.queries import stored_assignments, stored_experiments
from service.storage.queries.stored_assignments import StoredFilter

if TYPE_CHECKING:
    from service.application.context import Context
    from service.domain import Arm, Assignment, AssignmentStatus
    from service.storage.queries.stored_assignments import AssignmentPage


@dataclass(frozen=True, slots=True)
class AssignmentFilter:
    """Which assignments; None means any."""

    status: AssignmentStatus | None
    arm: str | None
    unit: str | None
    window: TimeWindow = ALWAYS


async def assignment(context: Context, key: str, assignment_id: str) -> tuple[Arm, Assignment]:
    """One assignment with its arm."""
    parsed = parse_assignment_id(assignment_id)
    async with context.database.reading() as connection:
        experiment_id = await stored_experiments.experiment_id_of(connection, key)
        found = await stored_assignments.assignment_by_draw(connection, experiment_id, parsed[0]) if parsed else None
        if found is None or parsed is None or found.token != parsed[1]:
            raise AssignmentNotFound(key, assignment_id)
        arms = await stored_experiments.arms_at(connection, experiment_id, [found.arm])
    return arms[found.arm], found


async def assignments(
    context: Context, key: str, wanted: AssignmentFilter, *, before: int | None, limit: int
) -> tuple[dict[int, Arm], AssignmentPage]:
    """A page of assignments, newest first, with their arms by position."""
    async with context.database.reading() as connection:
        progress = await stored_experiments.progress_by_key(connection, key)
        experiment_id, position = progress.experiment.id, None
        if wanted.arm is not None:
            position = await stored_experiments.position_of_arm(connection, experiment_id, wanted.arm)
            if position is None:
                raise ArmNotFound(key, wanted.arm)
        draws = range(*await wanted.window.draws(connection, progress, before))
        stored = StoredFilter(wanted.status, position, wanted.unit)
        page = await stored_assignments.page_of_assignments(connection, experiment_id, stored, draws=draws, limit=limit)
        arms = await stored_experiments.arms_at(connection, experiment_id, {one.arm for one in page.found})
    return arms, page
