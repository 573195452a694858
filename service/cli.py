"""The `bestarm` command."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import Annotated

import typer
import uvicorn
from pydantic import ValidationError
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress

from service import __version__
from service.application.reads.readiness import require_ready
from service.application.reads.replay import Difference
from service.application.reads.replay import replay as replay_history
from service.errors import BestArmError
from service.settings import Settings
from service.simulation import simulation_commands
from service.storage.database import Database, display_url
from service.storage.migrate import migrate as migrate_database
from service.web.fast_path.protocol import FastPathProtocol
from service.web.hosts import is_loopback
from service.web.request_metrics import FOLDER as METRICS_FOLDER

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Find the best variant with live traffic.",
)
say = Console(stderr=True, highlight=False)
# Requests in flight get this long to finish after Ctrl-C or SIGTERM.
_GRACE_SECONDS = 20
# A worker on a busy host may need long to start; killed too soon it would be started again and again, and never serve. But the
# parent waits that long, too, for one that dies just while it is asked whether it is well.
_STARTING_SECONDS = 20


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


def _settings(**given: object) -> Settings:
    """The settings, or a sentence on the one that is wrong."""
    try:
        return Settings(**given)  # type: ignore[arg-type] # pydantic checks them
    except ValidationError as wrong:
        first = wrong.errors()[0]
        say.print(f"[red]BESTARM_{str(first['loc'][0]).upper()}[/] is {first['input']!r}: {first['msg']}.")
        raise typer.Exit(2) from wrong


async def _prepare(settings: Settings) -> None:
    """An embedded database is migrated on the spot; a PostgreSQL belongs to its operator."""
    database = Database(settings.database_url)
    try:
        if database.is_sqlite:
            await migrate_database(database)
        await require_ready(database)
    finally:
        await database.close()


def _reason(trouble: Exception) -> str:
    """What went wrong, with what the database itself said: its operator must know, callers over HTTP need not."""
    first: BaseException = trouble
    while first.__cause__ is not None:
        first = first.__cause__
    return str(trouble) if first is trouble else f"{trouble} ({first})"


@contextmanager
def _shared_metrics(workers: int) -> Iterator[None]:
    """Several workers add up their metrics in a folder; it must be known before the workers import anything."""
    if workers == 1:
        yield
        return
    with TemporaryDirectory(prefix="bestarm-metrics-", ignore_cleanup_errors=True) as folder:
        os.environ[METRICS_FOLDER] = folder
        yield


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
        say.print(
            f"[red]Refusing to listen on {settings.host}[/]: the API has no keys yet, so anyone who reaches it may change "
            "anything. Listen on 127.0.0.1, or pass --insecure if the network itself is private."
        )
        raise typer.Exit(2)
    try:
        asyncio.run(_prepare(settings))
    except BestArmError as trouble:
        say.print(f"[red]Cannot start on {display_url(settings.database_url)}[/]: {escape(_reason(trouble))}")
        raise typer.Exit(1) from trouble
    say.print(f"bestarm {__version__} on http://{settings.host}:{settings.port} with {display_url(settings.database_url)}")
    for name, value in given.items():  # the worker processes read their settings from the environment
        if value is not None:
            os.environ[f"BESTARM_{name.upper()}"] = str(value)
    with _shared_metrics(settings.workers):
        uvicorn.run(
            "service.main:create_server",
            factory=True,
            host=settings.host,
            port=settings.port,
            workers=settings.workers,
            log_level=settings.log_level,
            http=FastPathProtocol,
            server_header=False,
            access_log=False,
            ws="none",
            proxy_headers=False,  # nothing here looks at the client's address
            timeout_graceful_shutdown=_GRACE_SECONDS,
            timeout_worker_healthcheck=_STARTING_SECONDS,
        )


@app.command()
def replay(key: Annotated[str, typer.Argument(help="Key of the experiment.")]) -> None:
    """Recompute every decision and every statistic of an experiment from its history; exit code 1 if anything differs."""
    settings = _settings()

    async def run() -> int:
        database = Database(settings.database_url)
        try:
            with Progress(console=say, transient=True) as bar:
                task = bar.add_task(f"Replaying {key}", total=None)
                return await replay_history(database, key, lambda done, of: bar.update(task, completed=done, total=of))
        finally:
            await database.close()

    try:
        events = asyncio.run(run())
    except Difference as difference:
        typer.echo(f"{key}: {difference}")
        raise typer.Exit(1) from difference
    except BestArmError as trouble:
        say.print(f"[red]Cannot replay[/]: {escape(_reason(trouble))}")
        raise typer.Exit(2) from trouble
    typer.echo(f"{key}: {events:,} events replayed, no difference.")


@app.command()
def migrate() -> None:
    """Bring the database to the newest schema."""
    settings = _settings()

    async def run() -> None:
        database = Database(settings.database_url)
        try:
            await migrate_database(database)
        finally:
            await database.close()

    try:
        asyncio.run(run())
    except (BestArmError, OSError) as trouble:
        say.print(f"[red]Cannot migrate {display_url(settings.database_url)}[/]: {escape(_reason(trouble))}")
        raise typer.Exit(1) from trouble
    say.print(f"{display_url(settings.database_url)} is at the newest migration.")


simulation_commands.register(app)
