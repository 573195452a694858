"""Answers that name the version they show: ETag, If-None-Match, 304."""

from __future__ import annotations

from fastapi import Request, Response

from service import __version__
from service.application.context import Context
from service.application.live.version_cache import Cached
from service.domain import ExperimentVersion
from service.web.response_pieces import sent_in_pieces


def etag_of(version: ExperimentVersion) -> str:
    """Made of the release, the experiment and its version: each may change what is shown under a key."""
    return f'"{__version__}-{version.experiment}-{version.number}"'


# Where the middleware that answers 304 leaves the version it read for the route behind it.
VERSION_READ = "bestarm.version_read"


async def current_version(request: Request, context: Context, key: str) -> ExperimentVersion:
    """The experiment's version, read after the request arrived, and once."""
    read: ExperimentVersion | None = request.scope.get(VERSION_READ)
    return await context.versions.current(key) if read is None else read


def matches(if_none_match: str | None, etag: str) -> bool:
    """Does the caller have this state already? (RFC 9110: a list, weak tags compare equal, * is any)."""
    if if_none_match is None:
        return False
    if if_none_match == etag:
        return True
    given = [tag.strip().removeprefix("W/") for tag in if_none_match.split(",")]
    return etag in given or "*" in given


def not_modified(etag: str) -> Response:
    """304: the caller has this state already."""
    return Response(status_code=304, headers={"ETag": etag, "Cache-Control": "no-cache"})


def versioned(
    made: Cached[bytes], experiment: int, if_none_match: str | None = None, media_type: str = "application/json"
) -> Response:
    """The body with its ETag, or 304."""
    etag = etag_of(ExperimentVersion(experiment, made.version))
    if matches(if_none_match, etag):
        return not_modified(etag)
    return sent_in_pieces(made.content, headers={"ETag": etag, "Cache-Control": "no-cache"}, media_type=media_type)
