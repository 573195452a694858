"""Reads that change nothing: assignments, the audit log, readiness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.domain import parse_assignment_id
from service.errors import ArmNotFound, AssignmentNotFound, DatabaseNotMigrated
from service.storage import migrating, reading

if TYPE_CHECKING:
    from service.application.context import Context
    from service.domain import Arm, Assignment, AssignmentStatus, Event
    from service.storage.database import Database


@dataclass(frozen=True, slots=True)
class AssignmentFilter:
    """Which assignments; None means any."""

    status: AssignmentStatus | None
    arm: str | None
    unit: str | None


async def assignment(context: Context, key: str, assignment_id: str) -> tuple[Arm, Assignment]:
    """One assignment with its arm."""
    parsed = parse_assignment_id(assignment_id)
    async with context.database.reading() as connection:
        progress, records = await reading.experiment_by_key(connection, key)
        experiment_id = progress.experiment.id
        found = await reading.assignment_by_draw(connection, experiment_id, parsed[0]) if parsed else None
    if found is None or parsed is None or found.token != parsed[1]:
        raise AssignmentNotFound(key, assignment_id)
    return records[found.arm].arm, found


async def assignments(
    context: Context, key: str, wanted: AssignmentFilter, *, before: int | None, limit: int
) -> tuple[list[Arm], list[Assignment]]:
    """A page of assignments, newest first, with all arms by position."""
    async with context.database.reading() as connection:
        progress, records = await reading.experiment_by_key(connection, key)
        arms = [record.arm for record in records]
        position = next((arm.position for arm in arms if arm.key == wanted.arm), None)
        if wanted.arm is not None and position is None:
            raise ArmNotFound(key, wanted.arm)
        found = await reading.page_of_assignments(
            connection,
            progress.experiment.id,
            before=before,
            limit=limit,
            status=wanted.status,
            arm=position,
            unit=wanted.unit,
        )
    return arms, found


async def audit_log(context: Context, key: str, *, before: int | None, limit: int) -> tuple[list[str], list[Event]]:
    """A page of the audit log, newest first, with the keys of all arms by position."""
    async with context.database.reading() as connection:
        progress, records = await reading.experiment_by_key(connection, key)
        found = await reading.page_of_events(connection, progress.experiment.id, before=before, limit=limit)
    return [record.arm.key for record in records], found


async def require_ready(database: Database) -> None:
    """Raise unless the database answers and is at the newest migration."""
    async with database.reading() as connection:
        found = await migrating.current(connection)
    if found != migrating.head():
        raise DatabaseNotMigrated(
            f"The database is at migration {found or 'none'}, this release needs {migrating.head()}: run `bestarm migrate`."
        )
