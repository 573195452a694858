"""What the commands share: the settings as they are given, the database while it is open, and sentences for people."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from typing import NoReturn, TypeVar

import typer
from pydantic import ValidationError
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress

from service.application.reads.readiness import require_ready
from service.engine.clock import microseconds_of
from service.errors import BestArmError
from service.settings import Settings
from service.storage.database import Database, require_file
from service.storage.pooling import refuse_pooled_transactions

Result = TypeVar("Result")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}

# Sentences for people. In a terminal they are broken between words; what a file or a log collector gets stays one line.
say = Console(stderr=True, highlight=False, soft_wrap=not sys.stderr.isatty())


def refuse(what: str, why: str, *, code: int) -> NoReturn:
    """Leave with a sentence."""
    say.print(f"[red]{escape(what)}[/]: {escape(why)}")
    raise typer.Exit(code)


def settings_given(**given: object) -> Settings:
    """The settings, or a sentence on the one that is wrong."""
    try:
        return Settings(**given)  # type: ignore[arg-type] # pydantic checks them
    except ValidationError as wrong:
        first = wrong.errors()[0]
        if not first["loc"]:  # of several settings together, one of which may be secret
            refuse("The settings are wrong", str(first.get("ctx", {}).get("error", first["msg"])), code=2)
        refuse(f"BESTARM_{str(first['loc'][0]).upper()} is {first['input']!r}", f"{first['msg']}.", code=2)


@asynccontextmanager
async def opened(settings: Settings, *, may_be_new: bool) -> AsyncIterator[Database]:
    """The database that is set, until the block ends."""
    require_file(settings.database_url, may_be_new=may_be_new)
    database = Database(settings.database_url)
    try:
        yield database
    finally:
        await database.close()


def run_ready(work: Callable[[Database], Awaitable[Result]]) -> Result:
    """Do something on the database that is set, if this release may use it."""
    settings = settings_given()

    async def run() -> Result:
        async with opened(settings, may_be_new=False) as database:
            await refuse_pooled_transactions(database)
            await require_ready(database)
            return await work(database)

    return asyncio.run(run())


def done(work: Callable[[Database], Awaitable[Result]]) -> Result:
    """The same, or a sentence why not."""
    try:
        return run_ready(work)
    except BestArmError as trouble:
        refuse("Not done", reason_of(trouble), code=2)


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """Shown on a terminal while the block runs; it is told how much is done, and of how much."""
    with Progress(console=say, transient=True, disable=not say.is_terminal) as bar:
        task = bar.add_task(escape(what), total=None)
        yield lambda done, of: bar.update(task, completed=done, total=of)


def seconds_of(text: str) -> int:
    """`90d`, `12h`, `30m`, `45s` or a number of seconds."""
    read = re.fullmatch(r"(\d{1,9})([smhd]?)", text)
    if read is None:
        raise typer.BadParameter("A time is written 90d, 12h, 30m or 45s.")
    return int(read[1]) * _UNITS[read[2] or "s"]


def time_given(text: str | None) -> int | None:
    """A time of an option in microseconds since 1970; without an offset it is UTC."""
    try:
        return None if text is None else microseconds_of(datetime.fromisoformat(text))
    except ValueError as unreadable:
        raise typer.BadParameter("A time is written in ISO 8601, as 2026-01-01T12:00:00Z.") from unreadable


def reason_of(trouble: Exception) -> str:
    """What went wrong, with what the database itself said: its operator must know, callers over HTTP need not."""
    first: BaseException = trouble
    while first.__cause__ is not None:
        first = first.__cause__
    return str(trouble) if first is trouble else f"{trouble} ({first})"
