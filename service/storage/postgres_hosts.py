"""The way to a PostgreSQL, or to whichever of several is the primary just now.

The driver can try several hosts by itself, but gives all of them together the time of one: behind a host that is cut off or
stopped, the next one would never be asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import asyncpg

from service.storage.postgres_failures import AWAY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import URL
    from sqlalchemy.ext.asyncio import AsyncEngine

_SECONDS = 10
# One of several that has not answered by then is passed over.
_SECONDS_OF_SEVERAL = 3


def connection_arguments(engine: AsyncEngine) -> dict[str, Any]:
    """What asyncpg needs to know to get at the engine's database."""
    _, arguments = engine.dialect.create_connect_args(engine.url)
    arguments.pop("async_fallback", None)
    return {**arguments, "timeout": _SECONDS}


def names_several(url: URL) -> bool:
    """Are there several hosts to choose from?"""
    return "," in url.query.get("host", "")


class PostgresHosts:
    """Opens connections of asyncpg's own; the host that answered last is asked first."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        hosts = arguments.get("host")
        self._ways = (
            [
                {**arguments, "host": host, "port": port, "timeout": _SECONDS_OF_SEVERAL}
                for host, port in zip(hosts, arguments["port"], strict=True)
            ]
            if isinstance(hosts, list)
            else [dict(arguments)]
        )

    async def connect(self, **more: object) -> asyncpg.Connection[Any]:
        """A connection to the first that can be used; if none can, what the last one said is raised."""
        refusal: Exception = OSError("No host is known.")
        for way in list(self._ways):
            try:
                connection: asyncpg.Connection[Any] = await asyncpg.connect(**way, **more)
            except (*AWAY, asyncpg.PostgresError) as refused:
                refusal = refused
                continue
            self._ways.sort(key=lambda one: one is not way)
            return connection
        raise refusal
