"""Assignments, one or a page of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.domain import parse_assignment_id
from service.domain.limits import LARGE_VALUES_BYTES
from service.errors import ArmNotFound, AssignmentNotFound
from service.storage.queries import stored_assignments, stored_experiments, stored_sizes
from service.storage.queries.stored_assignments import StoredFilter

if TYPE_CHECKING:
    from service.application.live.reader import Reader
    from service.application.reads.page_request import PageRequest
    from service.domain import Arm, Assignment, AssignmentStatus
    from service.storage.database import Connection
    from service.storage.queries.stored_assignments import AssignmentPage


@dataclass(frozen=True, slots=True)
class AssignmentFilter:
    """Which assignments; None means any."""

    status: AssignmentStatus | None
    arm: str | None
    unit: str | None


AssignmentsWithArms = tuple[dict[int, "Arm"], "AssignmentPage"]
"""A page of assignments, and their arms by position."""


async def assignment(reader: Reader, key: str, assignment_id: str) -> tuple[Arm, Assignment]:
    """One assignment with its arm."""
    parsed = parse_assignment_id(assignment_id)
    async with reader.database.reading() as connection:
        experiment_id = await stored_experiments.experiment_id_of(connection, key)
        found = await stored_assignments.assignment_by_draw(connection, experiment_id, parsed[0]) if parsed else None
        if found is None or parsed is None or found.token != parsed[1]:
            experiment = (await stored_experiments.progress_by_key(connection, key)).experiment
            raise AssignmentNotFound(key, assignment_id, pruned=experiment.pruned_at is not None)
        arms = await stored_experiments.arms_at(connection, experiment_id, [found.arm])
    return arms[found.arm], found


async def assignments(reader: Reader, key: str, wanted: AssignmentFilter, page: PageRequest) -> AssignmentsWithArms:
    """A page of assignments, newest first, with their arms by position."""
    async with reader.database.reading() as connection:
        return await _page(connection, key, wanted, page)


async def assignments_if_small(
    reader: Reader, key: str, wanted: AssignmentFilter, page: PageRequest
) -> AssignmentsWithArms | None:
    """The same, or None if its values may be so long that it is better read in a lane."""
    if page.is_long:
        return None
    async with reader.database.reading() as connection:
        longest = (await stored_sizes.size_by_key(connection, key)).longest_value
        if longest is None or longest * page.size > LARGE_VALUES_BYTES:
            return None
        return await _page(connection, key, wanted, page)


async def _page(connection: Connection, key: str, wanted: AssignmentFilter, page: PageRequest) -> AssignmentsWithArms:
    progress = await stored_experiments.progress_by_key(connection, key)
    experiment_id, position = progress.experiment.id, None
    if wanted.arm is not None:
        position = await stored_experiments.position_of_arm(connection, experiment_id, wanted.arm)
        if position is None:
            raise ArmNotFound(key, wanted.arm)
    draws = range(*await page.window.draws(connection, progress, page.before))
    stored = StoredFilter(wanted.status, position, wanted.unit)
    found = await stored_assignments.page_of_assignments(connection, experiment_id, stored, draws=draws, limit=page.limit)
    arms = await stored_experiments.arms_at(connection, experiment_id, {one.arm for one in found.found})
    return arms, found
