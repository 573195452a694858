"""`bestarm replay`: every decision and every statistic of one experiment, or of all, computed again and compared."""

from __future__ import annotations

from typing import Annotated

import typer

from service.application.reads.differences import Difference
from service.application.reads.experiment_keys import all_keys
from service.application.reads.replay import replay as replay_history
from service.command_line.console import progress_bar, reason_of, refuse, run_ready
from service.errors import BestArmError
from service.storage.database import Database


def replay(
    key: Annotated[str | None, typer.Argument(help="Key of the experiment.")] = None,
    *,
    every: Annotated[bool, typer.Option("--all", help="Replay every experiment.")] = False,
) -> None:
    """Recompute every decision and every statistic of an experiment from its history; exit code 1 if anything differs."""
    if (key is None) != every:
        refuse("Cannot replay", "Name an experiment, or pass --all.", code=2)

    async def run(database: Database) -> bool:
        keys = await all_keys(database) if key is None else [key]
        return all([await _is_clean(database, one) for one in keys])

    try:
        clean = run_ready(run)
    except BestArmError as trouble:
        refuse("Cannot replay", reason_of(trouble), code=2)
    raise typer.Exit(0 if clean else 1)


async def _is_clean(database: Database, key: str) -> bool:
    try:
        with progress_bar(f"Replaying {key}") as report:
            replayed = await replay_history(database, key, report)
    except Difference as difference:
        typer.echo(f"{key}: {difference}")
        return False
    typer.echo(f"{key}: {replayed.sentence()}")
    return True


def register(app: typer.Typer) -> None:
    """Add it to the program."""
    app.command()(replay)
