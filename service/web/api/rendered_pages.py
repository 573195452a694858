"""Pages of lists, from the database to the bytes that are sent: a long one is made by a lane's process.

Nothing of FastAPI is imported here, because every such process would hold it in memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from service.application.reads import assignments, audit_log, instance_log, observation_list
from service.web.api import audit_views, views
from service.web.api.listings import Listing

if TYPE_CHECKING:
    from collections.abc import Collection

    from service.application.context import Context
    from service.application.live.reader import Reader
    from service.application.reads.page_request import PageRequest
    from service.domain import Assignment, Event, LogEntry


async def events(context: Context, key: str, page: PageRequest, kinds: Collection[str]) -> bytes:
    """A page of the audit log as JSON."""
    found = await audit_log.audit_log_if_small(context, key, page, kinds)
    if found is None:
        return await context.lanes.present.run(render_events, key, page, kinds)
    return _encode_events(found, page.size)


async def render_events(reader: Reader, key: str, page: PageRequest, kinds: Collection[str]) -> bytes:
    """A page of the audit log, in whatever process this runs: a lane runs it by its name."""
    return _encode_events(await audit_log.audit_log(reader, key, page, kinds), page.size)


def _encode_events(found: audit_log.AuditPage, size: int) -> bytes:
    listing: Listing[Event] = Listing("events", lambda event: audit_views.event_view(event, found), lambda event: event.sequence)
    return listing.page(found.events, size, found.go_on_below)


async def assignments_page(context: Context, key: str, wanted: assignments.AssignmentFilter, page: PageRequest) -> bytes:
    """A page of assignments as JSON."""
    found = await assignments.assignments_if_small(context, key, wanted, page)
    if found is None:
        return await context.lanes.present.run(render_assignments, key, wanted, page)
    return _encode_assignments(key, found, page.size)


async def render_assignments(reader: Reader, key: str, wanted: assignments.AssignmentFilter, page: PageRequest) -> bytes:
    """A page of assignments, in whatever process this runs."""
    return _encode_assignments(key, await assignments.assignments(reader, key, wanted, page), page.size)


def _encode_assignments(key: str, found: assignments.AssignmentsWithArms, size: int) -> bytes:
    arms, page = found
    listing: Listing[Assignment] = Listing(
        "assignments", lambda one: views.assignment_view(key, arms[one.arm], one), lambda one: one.draw
    )
    return listing.page(page.found, size, page.go_on_below)


async def observations_page(context: Context, key: str, arm: str | None, page: PageRequest) -> bytes:
    """A page of observations as JSON."""
    if page.is_long:
        return await context.lanes.present.run(render_observations, key, arm, page)
    return await render_observations(context, key, arm, page)


async def render_observations(reader: Reader, key: str, arm: str | None, page: PageRequest) -> bytes:
    """A page of observations, in whatever process this runs."""
    found = await observation_list.observations(reader, key, arm, page)
    listing: Listing[observation_list.Observation] = Listing(
        "observations", lambda one: views.observation_view(key, one), lambda one: one.sequence
    )
    return listing.page(found.found, page.size, found.go_on_below)


async def render_log(reader: Reader, page: PageRequest) -> bytes:
    """A page of the instance's log as JSON, wherever this runs."""
    found = await instance_log.log_page(reader, page)
    listing: Listing[LogEntry] = Listing("entries", _entry_view, lambda entry: entry.number)
    return listing.page(found.entries, page.size, found.go_on_below)


def _entry_view(entry: LogEntry) -> dict[str, Any]:
    details: dict[str, Any] = dict(entry.details)
    actor = details.pop("actor", None)
    if "created_at" in details:
        details["created_at"] = views.time_text(details["created_at"])
    return {"id": entry.number, "kind": entry.kind, "at": views.time_text(entry.at), "actor": actor, "details": details}
