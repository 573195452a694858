"""The access log: one JSON object for each answered request, on standard output beside the log, where it was asked for.

It says who asked for what and how that went, and nothing of what was asked or answered: no query, no header but the request's id,
no value, no unit, no secret. A path is given as far as its parts are names of ours that were found here; where the request was
refused, whatever stands in its path may be anything, and only the route is told.
"""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from service.domain.limits import API_KEY_ID_PATTERN, ASSIGNMENT_ID_PATTERN, KEY_PATTERN

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from service.domain.callers import Caller

_PLACE = re.compile(r"{(\w+)(?::\w+)?}")
# What may be shown of a path: an observation's id, or a unit, is the caller's own.
_SHOWN = {
    "key": re.compile(KEY_PATTERN),
    "arm": re.compile(KEY_PATTERN),
    "chart": re.compile("[a-z]+"),
    "id": re.compile(f"{ASSIGNMENT_ID_PATTERN}|{API_KEY_ID_PATTERN}"),
}
# Refused for the state of something that is there.
_FOUND = {HTTPStatus.CONFLICT, HTTPStatus.PRECONDITION_FAILED}


class _Line(msgspec.Struct, omit_defaults=True, gc=False):
    timestamp: str
    level: Literal["info"]
    event: Literal["request"]
    request_id: str
    method: str
    route: str
    path: str
    status: int
    milliseconds: float
    bytes: int
    key: str | None
    insecure: bool = False


_encode = msgspec.json.Encoder().encode


def shown_path(route: str, parameters: Mapping[str, Any], status: int) -> str:
    """The path of a request, as far as it is shown."""
    if status >= HTTPStatus.BAD_REQUEST and status not in _FOUND:
        return route

    def part(place: re.Match[str]) -> str:
        value, shown = parameters.get(place[1]), _SHOWN.get(place[1])
        return value if isinstance(value, str) and shown is not None and shown.fullmatch(value) else place[0]

    return _PLACE.sub(part, route)


class AccessLog:
    """One per worker."""

    def __init__(self, is_insecure: Callable[[], bool]) -> None:
        self._is_insecure = is_insecure
        """Is the service open to everybody who reaches it, beyond its own machine?"""

    def write(
        self,
        method: str,
        route: str,
        parameters: Mapping[str, Any],
        status: int,
        *,
        seconds: float,
        size: int,
        request_id: str,
        caller: Caller | None,
    ) -> None:
        """One request was answered. The line is written at once and whole, as those of the log are."""
        line = _Line(
            datetime.now(UTC).isoformat().replace("+00:00", "Z"),
            "info",
            "request",
            request_id,
            method,
            route,
            shown_path(route, parameters, status),
            status,
            round(seconds * 1e3, 3),
            size,
            None if caller is None else caller.id,
            self._is_insecure(),
        )
        sys.stdout.write(_encode(line).decode() + "\n")
        sys.stdout.flush()
