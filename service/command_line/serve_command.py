"""`bestarm serve`: what is checked and prepared before the service runs."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import sys
from typing import Annotated

import typer
from rich.markup import escape

from service import __version__, serving
from service.application.reads.readiness import require_ready, schema_of
from service.command_line.console import opened, reason_of, refuse, say, settings_given
from service.errors import BestArmError
from service.settings import Settings
from service.storage.database import is_missing
from service.storage.database_url import display_url
from service.storage.migrate import migrate
from service.storage.pooling import refuse_pooled_transactions
from service.storage.queries import stored_api_keys
from service.storage.schema_compatibility import Schema
from service.web.hosts import is_loopback


async def _has_keys(settings: Settings) -> bool:
    """Is there any key, or was there one? A database that is not there yet has none; one that does not answer does not say."""
    if settings.admin_key_in_use() is not None or settings.provider_ground() is not None:
        return True
    if is_missing(settings.database_url):
        return False
    async with opened(settings, may_be_new=False) as database, database.reading() as connection:
        return await stored_api_keys.were_there_any(connection)


async def _prepare(settings: Settings) -> Schema:
    """An embedded database is migrated on the spot; a PostgreSQL belongs to its operator. How far it is."""
    async with opened(settings, may_be_new=True) as database:
        if database.is_sqlite:
            await migrate(database)
        await require_ready(database)
        await refuse_pooled_transactions(database)
        return await schema_of(database)


def _listening(host: str, port: int, chosen_by: str) -> list[socket.socket]:
    """The port, taken before anything else is touched: whoever has it may be using the same database."""
    try:
        return serving.bound_sockets(host, port)
    except OSError as trouble:
        hint = f" Is the service running already? `{chosen_by}` chooses another." if trouble.errno == errno.EADDRINUSE else ""
        refuse(f"Cannot listen on {host}:{port}", f"{trouble.strerror}.{hint}", code=1)


def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on.")] = None,
    workers: Annotated[int | None, typer.Option(help="Worker processes.")] = None,
    insecure: Annotated[  # noqa: FBT002 - a flag
        bool,
        typer.Option(
            "--insecure", help="Listen beyond loopback although there are no keys: whoever reaches it may change anything."
        ),
    ] = False,
    access_log: Annotated[  # noqa: FBT002 - a flag
        bool, typer.Option("--access-log", help="Log every answered request, without values and secrets.")
    ] = False,
) -> None:
    """Run the service and its dashboard."""
    given = {"host": host, "port": port, "workers": workers, "insecure": insecure or None, "access_log": access_log or None}
    settings = settings_given(**{name: value for name, value in given.items() if value is not None})
    try:
        may_listen = is_loopback(settings.reachable_at) or settings.insecure or asyncio.run(_has_keys(settings))
    except BestArmError as trouble:
        refuse(f"Cannot tell whether there are keys in {display_url(settings.database_url)}", reason_of(trouble), code=1)
    if not may_listen:
        refuse(
            f"Refusing to listen on {settings.reachable_at}",
            "there are no keys, so anyone who reaches it may change anything. Set BESTARM_ADMIN_KEY, or make a key with "
            "`bestarm keys create --label me --scope admin`; or listen on 127.0.0.1; or pass --insecure.",
            code=2,
        )
    sockets = _listening(settings.host, settings.port, "--port")
    metrics = _listening(settings.host, settings.metrics_port, "BESTARM_METRICS_PORT") if settings.metrics_port else []
    try:
        schema = asyncio.run(_prepare(settings))
    except BestArmError as trouble:
        refuse(f"Cannot start on {display_url(settings.database_url)}", reason_of(trouble), code=1)
    if sys.stderr.isatty():  # the log says it, too, but not to people
        address = serving.address_of(settings.host, sockets)
        say.print(f"bestarm {__version__} on {address} with {escape(display_url(settings.database_url))}. Ctrl-C stops it.")
    for name, value in given.items():  # the worker processes read their settings from the environment
        if value is not None:
            os.environ[f"BESTARM_{name.upper()}"] = str(value)
    raise typer.Exit(serving.run(settings, schema, sockets, metrics))


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command()(serve)
