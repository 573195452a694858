"""Answers that name the version they show: ETag, If-None-Match, 304."""

from __future__ import annotations

from fastapi import Response

from service import __version__
from service.application import sharing
from service.application.context import Context
from service.application.kept import Made, made_bytes
from service.web import views


def etag_of(version: int) -> str:
    """Made of the release and the version: either may change what is shown."""
    return f'"{__version__}-{version}"'


def matches(if_none_match: str | None, etag: str) -> bool:
    """Does the caller have this state already? (RFC 9110: a list, weak tags compare equal, * is any)."""
    if if_none_match is None:
        return False
    given = [tag.strip().removeprefix("W/") for tag in if_none_match.split(",")]
    return etag in given or "*" in given


def not_modified(etag: str) -> Response:
    """The caller has it."""
    return Response(status_code=304, headers={"ETag": etag, "Cache-Control": "no-cache"})


def versioned(made: Made[bytes], if_none_match: str | None, media_type: str = "application/json") -> Response:
    """The body with its ETag, or 304."""
    etag = etag_of(made.version)
    if matches(if_none_match, etag):
        return not_modified(etag)
    return Response(made.content, headers={"ETag": etag, "Cache-Control": "no-cache"}, media_type=media_type)


async def recommendation(context: Context, key: str, version: int) -> Made[bytes]:
    """The recommendation as JSON, of this version or a newer one, computed and written once for all who look."""

    async def make() -> Made[bytes]:
        found = await sharing.recommendation(context, key, version)
        return made_bytes(found.progress.version, views.encode(views.recommendation_view(found)))

    return await context.kept.at_least(("recommendation", key), version, make)
