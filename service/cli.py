"""The `bestarm` command."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, NoReturn

import typer
from pydantic import ValidationError
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress

from service import __version__, serving
from service.application.reads.readiness import require_ready
from service.application.reads.replay import Difference
from service.application.reads.replay import replay as replay_history
from service.errors import BestArmError
from service.settings import Settings
from service.simulation import plan_command, simulation_commands
from service.storage.database import Database, display_url, require_file
from service.storage.migrate import migrate as migrate_database
from service.web.hosts import is_loopback

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Find the best variant with live traffic.",
)
# Sentences for people. In a terminal they are broken between words; what a file or a log collector gets stays one line.
say = Console(stderr=True, highlight=False, soft_wrap=not sys.stderr.isatty())


def _version(wanted: bool) -> None:  # noqa: FBT001 - typer's callback
    if wanted:
        typer.echo(f"bestarm {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[  # noqa: FBT002 - a flag
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Find the best variant with live traffic."""


def _refuse(what: str, why: str, *, code: int) -> NoReturn:
    """Leave with a sentence."""
    say.print(f"[red]{escape(what)}[/]: {escape(why)}")
    raise typer.Exit(code)


def _settings(**given: object) -> Settings:
    """The settings, or a sentence on the one that is wrong."""
    try:
        return Settings(**given)  # type: ignore[arg-type] # pydantic checks them
    except ValidationError as wrong:
        first = wrong.errors()[0]
        _refuse(f"BESTARM_{str(first['loc'][0]).upper()} is {first['input']!r}", f"{first['msg']}.", code=2)


@asynccontextmanager
async def _opened(settings: Settings, *, may_be_new: bool) -> AsyncIterator[Database]:
    """The database that is set, until the block ends."""
    require_file(settings.database_url, may_be_new=may_be_new)
    database = Database(settings.database_url)
    try:
        yield database
    finally:
        await database.close()


async def _prepare(settings: Settings) -> None:
    """An embedded database is migrated on the spot; a PostgreSQL belongs to its operator."""
    async with _opened(settings, may_be_new=True) as database:
        if database.is_sqlite:
            await migrate_database(database)
        await require_ready(database)


def _reason(trouble: Exception) -> str:
    """What went wrong, with what the database itself said: its operator must know, callers over HTTP need not."""
    first: BaseException = trouble
    while first.__cause__ is not None:
        first = first.__cause__
    return str(trouble) if first is trouble else f"{trouble} ({first})"


def _listening(settings: Settings) -> list[socket.socket]:
    """The port, taken before anything else is touched: whoever has it may be using the same database."""
    try:
        return serving.bound_sockets(settings.host, settings.port)
    except OSError as trouble:
        hint = " Is the service running already? `--port` chooses another." if trouble.errno == errno.EADDRINUSE else ""
        _refuse(f"Cannot listen on {settings.host}:{settings.port}", f"{trouble.strerror}.{hint}", code=1)


@app.command()
def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on.")] = None,
    workers: Annotated[int | None, typer.Option(help="Worker processes.")] = None,
    insecure: Annotated[  # noqa: FBT002 - a flag
        bool, typer.Option("--insecure", help="Listen beyond loopback although there are no keys yet.")
    ] = False,
) -> None:
    """Run the service and its dashboard."""
    given = {"host": host, "port": port, "workers": workers}
    settings = _settings(**{name: value for name, value in given.items() if value is not None})
    if not is_loopback(settings.host) and not insecure:
        _refuse(
            f"Refusing to listen on {settings.host}",
            "the API has no keys yet, so anyone who reaches it may change anything. "
            "Listen on 127.0.0.1, or pass --insecure if the network itself is private.",
            code=2,
        )
    sockets = _listening(settings)
    try:
        asyncio.run(_prepare(settings))
    except BestArmError as trouble:
        _refuse(f"Cannot start on {display_url(settings.database_url)}", _reason(trouble), code=1)
    if sys.stderr.isatty():  # the log says it, too, but not to people
        address = serving.address_of(settings.host, sockets)
        say.print(f"bestarm {__version__} on {address} with {escape(display_url(settings.database_url))}. Ctrl-C stops it.")
    for name, value in given.items():  # the worker processes read their settings from the environment
        if value is not None:
            os.environ[f"BESTARM_{name.upper()}"] = str(value)
    raise typer.Exit(serving.run(settings, sockets))


@app.command()
def replay(key: Annotated[str, typer.Argument(help="Key of the experiment.")]) -> None:
    """Recompute every decision and every statistic of an experiment from its history; exit code 1 if anything differs."""
    settings = _settings()

    async def run() -> int:
        async with _opened(settings, may_be_new=False) as database:
            await require_ready(database)
            with Progress(console=say, transient=True) as bar:
                task = bar.add_task(f"Replaying {key}", total=None)
                return await replay_history(database, key, lambda done, of: bar.update(task, completed=done, total=of))

    try:
        events = asyncio.run(run())
    except Difference as difference:
        typer.echo(f"{key}: {difference}")
        raise typer.Exit(1) from difference
    except BestArmError as trouble:
        _refuse("Cannot replay", _reason(trouble), code=2)
    typer.echo(f"{key}: {events:,} events replayed, no difference.")


@app.command()
def migrate() -> None:
    """Bring the database to the newest schema."""
    settings = _settings()

    async def run() -> None:
        async with _opened(settings, may_be_new=True) as database:
            await migrate_database(database)

    try:
        asyncio.run(run())
    except (BestArmError, OSError) as trouble:
        _refuse(f"Cannot migrate {display_url(settings.database_url)}", _reason(trouble), code=1)
    say.print(f"{escape(display_url(settings.database_url))} is at the newest migration.")


simulation_commands.register(app)
plan_command.register(app)
