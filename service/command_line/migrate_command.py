"""`bestarm migrate`: the database as this release needs it."""

from __future__ import annotations

import asyncio

import typer
from rich.markup import escape

from service.command_line.console import opened, reason_of, refuse, say, settings_given
from service.errors import BestArmError
from service.storage.database_url import display_url
from service.storage.migrate import migrate as migrate_database
from service.storage.pooling import refuse_pooled_transactions
from service.storage.schema_compatibility import Schema


def migrate() -> None:
    """Bring the database to the newest schema."""
    settings = settings_given()

    async def run() -> Schema:
        async with opened(settings, may_be_new=True) as database:
            await refuse_pooled_transactions(database)
            return await migrate_database(database)

    try:
        schema = asyncio.run(run())
    except (BestArmError, OSError) as trouble:
        refuse(f"Cannot migrate {display_url(settings.database_url)}", reason_of(trouble), code=1)
    where = escape(display_url(settings.database_url))
    say.print(f"{where} is at migration {schema.revision}. Releases at {schema.compatible_with} or later may run on it.")


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command()(migrate)
