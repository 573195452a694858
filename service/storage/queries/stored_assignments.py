"""Assignments: one, a page, and those that wait for the sweep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import select, text

from service.domain.limits import MOST_VISITED_ASSIGNMENTS
from service.storage import traffic_rows
from service.storage.tables import ENDED_ONLY, HIDDEN, assignments, events, experiments

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from sqlalchemy import Select
    from sqlalchemy.ext.asyncio import AsyncConnection

    from service.domain import Assignment

# The statuses to which steps lead that have an index. To most assignments a reward comes, and none is in it.
_BY_STEPS: Final = ("expired", "voided")


@dataclass(frozen=True, slots=True)
class StoredFilter:
    """Which assignments; None means any. Arms are named by their positions."""

    status: str | None
    arm: int | None
    unit: str | None


@dataclass(frozen=True, slots=True)
class AssignmentPage:
    """What was found; and, where the search stopped before the page was full, the draw to go on below."""

    found: list[Assignment]
    go_on_below: int | None


async def assignment_by_draw(connection: AsyncConnection, experiment_id: int, draw: int) -> Assignment | None:
    """One assignment."""
    wanted = select(assignments).where(assignments.c.experiment_id == experiment_id, assignments.c.draw == draw)
    row = (await connection.execute(wanted)).mappings().first()
    return traffic_rows.assignment_from(row) if row else None


async def page_of_assignments(
    connection: AsyncConnection, experiment_id: int, wanted: StoredFilter, *, draws: range, limit: int
) -> AssignmentPage:
    """Newest first, of these draws.

    Units have an index, and the steps to expired and voided; the rest is looked for among what that one gives or from the newest
    draw down. One page visits a bounded number.
    """
    if wanted.status in _BY_STEPS and wanted.unit is None and wanted.arm is None:
        return await _page_by_steps(connection, experiment_id, wanted.status, draws=draws, limit=limit)
    return await _walked_page(connection, experiment_id, wanted, draws=draws, limit=limit)


async def _walked_page(
    connection: AsyncConnection, experiment_id: int, wanted: StoredFilter, *, draws: range, limit: int
) -> AssignmentPage:
    """By unit or by draw: those of an arm, pending ones and rewarded ones are looked for from the newest."""
    inside = [assignments.c.experiment_id == experiment_id, assignments.c.draw >= draws.start, assignments.c.draw < draws.stop]
    asked = {name: value for name in ("unit", "arm", "status") if (value := getattr(wanted, name)) is not None}
    if "unit" in asked:
        inside.append(assignments.c.unit == asked.pop("unit"))
    newest = assignments.c.draw.desc()
    if asked:
        # The first draw that this page does not visit any more, if there are so many.
        last = select(assignments.c.draw).where(*inside).order_by(newest).offset(MOST_VISITED_ASSIGNMENTS).limit(1)
        unvisited = (await connection.execute(last)).scalar_one_or_none()
        inside += [assignments.c[name] == value for name, value in asked.items()]
        if unvisited is not None:
            inside.append(assignments.c.draw > unvisited)
    else:
        unvisited = None
    found = await _read(connection, select(assignments).where(*inside).order_by(newest).limit(limit))
    return AssignmentPage(found, unvisited + 1 if unvisited is not None and len(found) < limit else None)


async def _page_by_steps(
    connection: AsyncConnection, experiment_id: int, status: str, *, draws: range, limit: int
) -> AssignmentPage:
    """By the steps that led to this status; some led on from there, so there may be fewer assignments than steps."""
    found: list[Assignment] = []
    visited, below = 0, draws.stop
    while visited < MOST_VISITED_ASSIGNMENTS:
        steps = select(events.c.draw).where(events.c.experiment_id == experiment_id, text(ENDED_ONLY))
        steps = steps.where(events.c.status_after == status, events.c.draw >= draws.start, events.c.draw < below)
        steps = steps.order_by(events.c.draw.desc()).limit(max(limit, visited))
        passed = (await connection.execute(steps)).scalars().all()
        if not passed:
            return AssignmentPage(found, None)
        visited += len(passed)
        below = passed[-1]
        these = assignments.c.experiment_id == experiment_id, assignments.c.draw.in_(set(passed)), assignments.c.status == status
        found += sorted(await _read(connection, select(assignments).where(*these)), key=lambda one: -one.draw)
        if len(found) >= limit:
            return AssignmentPage(found[:limit], None)
    return AssignmentPage(found, below)


async def _read(connection: AsyncConnection, statement: Select[Any]) -> list[Assignment]:
    return [traffic_rows.assignment_from(row) for row in (await connection.execute(statement)).mappings()]


async def assignment_ids(connection: AsyncConnection, experiment_id: int, draws: Collection[int]) -> dict[int, str]:
    """What callers know the assignments of these draws by."""
    wanted = select(assignments).where(assignments.c.experiment_id == experiment_id, assignments.c.draw.in_(draws))
    found = [traffic_rows.assignment_from(row) for row in (await connection.execute(wanted)).mappings()] if draws else []
    return {assignment.draw: assignment.id for assignment in found}


async def assignments_from(connection: AsyncConnection, experiment_id: int, first: int, count: int) -> list[Assignment]:
    """So many assignments in draw order, beginning with this draw."""
    wanted = (
        select(assignments)
        .where(assignments.c.experiment_id == experiment_id, assignments.c.draw >= first, assignments.c.draw < first + count)
        .order_by(assignments.c.draw)
    )
    return [traffic_rows.assignment_from(row) for row in (await connection.execute(wanted)).mappings()]


async def database_time(connection: AsyncConnection) -> int | None:
    """What the database's clock shows; None where that is this process's own."""
    if connection.dialect.name == "sqlite":
        return None
    shown = text("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
    return int((await connection.execute(shown)).scalar_one())


async def experiments_with_due(connection: AsyncConnection, now: int) -> Sequence[str]:
    """Keys of the experiments in which some assignment waits for the sweep; archived and pruned ones are frozen."""
    due = select(assignments.c.draw).where(
        assignments.c.experiment_id == experiments.c.id,
        assignments.c.due_at.is_not(None),
        assignments.c.due_at <= now,
    )
    wanted = select(experiments.c.key).where(
        experiments.c.may_expire,
        experiments.c.status.not_in(("archived", *HIDDEN)),
        experiments.c.pruned_at.is_(None),
        due.exists(),
    )
    return (await connection.execute(wanted)).scalars().all()
