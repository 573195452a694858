"""Ask: which arm to show."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from dataclasses import replace

from bestarm.assignment import Assignment, Json, text
from bestarm.errors import Error
from bestarm.exchange import Answer, Flow, sent
from bestarm.operations.core import Core
from bestarm.requests import get, path_of, post

_log = logging.getLogger("bestarm")


def assign(
    core: Core,
    /,
    experiment: str,
    unit: str | None = None,
    *,
    fallback: str | None = None,
    fallback_value: Json = None,
    timeout: float | None = None,
) -> Flow[Assignment]:
    """Ask for an arm. `unit` is your name for whoever sees it; sticky experiments need it.

    With a `fallback`, the arm to show when there is none from the service, this never fails and is back within the time-out,
    whatever the service does: `is_fallback` says so, `error` why. What is shown then was no draw, and its reward is dropped.
    What is wrong in the call itself, such as a unit that is no text, is a `TypeError` or `ValueError` at once and every time.
    """
    text(experiment, "An experiment's key")
    if unit is not None:
        text(unit, "A unit")
    deadline = core.deadline(timeout, has_fallback=fallback is not None)
    try:
        call = post(path_of(experiment, "assignments"), {} if unit is None else {"unit": unit})
        return (yield from sent(call, _assignment, deadline))
    except Error as trouble:
        if fallback is None:
            raise
        core.counter.add("fallbacks")
        level = logging.WARNING if core.outage_log.is_due() else logging.DEBUG
        _log.log(level, "%s is answered with its fallback %s: %s", experiment, fallback, trouble)
        return Assignment(None, experiment, fallback, fallback_value, unit, is_fallback=True, error=trouble)


def assign_many(
    core: Core,
    /,
    experiment: str,
    units: Iterable[str] | None = None,
    *,
    count: int | None = None,
    timeout: float | None = None,
) -> Flow[list[Assignment]]:
    """Ask for many arms at once, one for each of `units` or so many as `count`: up to 10,000, all or nothing, in this order."""
    if (units is None) == (count is None):
        raise ValueError("Many arms are asked for by their units or by their count.")
    body = {"count": count} if units is None else {"units": list(units)}
    call = post(path_of(experiment, "assignments", "batch"), body)
    return (yield from sent(call, _assignments, core.deadline(timeout)))


def assignment(core: Core, /, experiment: str, assignment_id: str, *, timeout: float | None = None) -> Flow[Assignment]:
    """Read an assignment, and what became of it."""
    return (yield from sent(get(path_of(experiment, "assignments", assignment_id)), _assignment, core.deadline(timeout)))


def _assignment(answer: Answer) -> Assignment:
    return Assignment.read(json.loads(answer.content))


def _assignments(answer: Answer) -> list[Assignment]:
    """The assignments of a batch; large values are told once for each arm."""
    written = json.loads(answer.content)
    made = [Assignment.read(one) for one in written["assignments"]]
    values = written.get("values")
    return made if values is None else [replace(one, value=values[one.arm]) for one in made]
