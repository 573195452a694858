"""Look: which arm is best, and how sure that is."""

from __future__ import annotations

import json

from bestarm.errors import MalformedAnswer
from bestarm.exchange import Answer, Flow, sent
from bestarm.experiment import Recommendation
from bestarm.operations.core import Core
from bestarm.requests import get, path_of

_NOT_MODIFIED = 304


def recommendation(core: Core, /, experiment: str, *, timeout: float | None = None) -> Flow[Recommendation]:
    """Which arm is best now, and how sure that is. Cheap to ask again: what has not changed is not sent a second time."""
    path, deadline = path_of(experiment, "recommendation"), core.deadline(timeout)
    known = core.looks.get(experiment)
    call = get(path) if known is None else get(path, if_none_match=known[0])
    etag, seen = yield from sent(call, _checked, deadline)
    if seen is not None:
        if etag:
            core.looks.put(experiment, etag, seen)
        return seen
    if known is None:
        raise MalformedAnswer("Nothing has changed, but nothing was known.")
    return known[1]


def _checked(answer: Answer) -> tuple[str, Recommendation | None]:
    if answer.status == _NOT_MODIFIED:
        return "", None
    return answer.headers.get("etag", ""), Recommendation.read(json.loads(answer.content))
