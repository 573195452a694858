"""Rows of the database, and points of the course, as the values of an export's columns, in their order.

Times stay microseconds since 1970 and JSON stays objects: how they are written is each format's own affair.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

from service.domain import AUDITED
from service.domain.assignment import assignment_id
from service.storage.traffic_rows import event_from
from service.web.api.audit_views import worded_details

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from service.application.reads.course import Point
    from service.application.reads.export import Export
    from service.storage.row_streams.row_snapshot import Row

    Values = tuple[Any, ...]

_AUDITED = frozenset(AUDITED)


async def values_of(export: Export) -> AsyncIterator[Sequence[Values]]:
    """The rows of an export, a bounded number at once."""
    if export.course is not None:
        from service.application.reads.exported_course import exported_points  # noqa: PLC0415 - numpy would double the memory

        for point in exported_points(export, export.course):
            yield _values_of_point(point, export)
        return
    worded: Callable[[Mapping[int, str], Row], Values] = {
        "assignments": _assignment,
        "observations": _observation,
        "events": _event,
    }[export.order.of]
    one = partial(worded, dict(enumerate(export.arm_keys)))
    async for rows in export.batches():
        yield [one(row) for row in rows]


def _assignment(arm_keys: Mapping[int, str], row: Row) -> Values:
    (
        sequence, draw, token, arm, unit, reason, status, reward, closed, epoch,
        created_at, rewarded_at, expires_at, expiry_reward,
    ) = row  # fmt: skip
    return (
        sequence, draw, assignment_id(draw, token), arm_keys[arm], unit, reason, status, reward, bool(closed), epoch,
        created_at, rewarded_at, expires_at, expiry_reward,
    )  # fmt: skip


def _observation(arm_keys: Mapping[int, str], row: Row) -> Values:
    sequence, name, arm, status, reward, epoch, at, _ = row
    return sequence, name, arm_keys[arm], status, reward, epoch, at


def _event(arm_keys: Mapping[int, str], row: Row) -> Values:
    audited, arm = row["kind"] in _AUDITED, row["arm"]
    actor, details = (None, None) if row["details"] is None else _words(arm_keys, row)
    return (
        row["sequence"],
        row["kind"],
        row["at"],
        audited,
        None if arm is None else arm_keys[arm],
        row["draw"],
        row["reason"],
        row["epoch"],
        row["status_before"],
        row["reward_before"],
        row["status_after"],
        row["reward_after"],
        row["expires_at"],
        row["expiry_reward"],
        actor,
        details,
    )


def _words(arm_keys: Mapping[int, str], row: Row) -> tuple[str | None, dict[str, Any] | None]:
    """Who did it, and the details as the audit log tells them."""
    actor, details = worded_details(event_from(row), arm_keys)
    return (actor or {}).get("id"), details or None


def _values_of_point(point: Point, export: Export) -> list[Values]:
    """A row for each arm that there was then."""
    snapshot, total = point.snapshot, sum(point.snapshot.draws)
    wanted = range(len(snapshot.draws)) if export.arm is None else [export.arm] if export.arm < len(snapshot.draws) else []
    return [
        (
            snapshot.sequence,
            snapshot.at,
            export.arm_keys[place],
            snapshot.active[place],
            point.best is not None and point.best.position == place,
            snapshot.draws[place],
            snapshot.observations[place],
            snapshot.means[place],
            *(point.certainty.intervals[place] or (None, None)),
            snapshot.draws[place] / total if total else 0.0,
            snapshot.targets[place],
        )
        for place in wanted
    ]


def json_text(value: object) -> str:
    """JSON where a column can hold text only."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
