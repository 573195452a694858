"""`bestarm backup`, `prune` and `forget`: what an operator keeps of the data, and what not."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from service.application.commands import prune as pruning
from service.application.commands.forget import Forgotten
from service.application.commands.forget import forget as forget_unit
from service.command_line.console import done, progress_bar, reason_of, refuse, say, seconds_of, settings_given
from service.domain.limits import LONGEST_UNIT
from service.engine.clock import now_microseconds
from service.errors import BestArmError
from service.storage.database import Database, require_file
from service.storage.sqlite_backup import back_up, embedded_file


def backup(
    file: Annotated[Path, typer.Argument(help="The copy.")],
    *,
    replace: Annotated[bool, typer.Option("--replace", help="The file may be there already; it is replaced at the end.")] = False,
) -> None:
    """Copy the embedded database into a file while it is in use."""
    url = settings_given().database_url
    try:
        source = embedded_file(url)
        require_file(url, may_be_new=False)
        with progress_bar(f"Copying {source.name}") as report:
            size = back_up(source, file, report, replace=replace)
    except BestArmError as trouble:
        refuse("Not done", reason_of(trouble), code=2)
    say.print(f"{escape(str(source))} is copied to {escape(str(file))}: {size:,} bytes, whole and on the disk.")


def prune(
    keys: Annotated[list[str] | None, typer.Argument(help="Experiments; all that are over if none is named.")] = None,
    *,
    older_than: Annotated[str, typer.Option(help="How long ago they were concluded: 90d, 12h.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
) -> None:
    """Give up the assignments, single rewards and observations of experiments that are over. What was counted stays."""
    ended_before = now_microseconds() - seconds_of(older_than) * 1_000_000

    async def run(database: Database) -> None:
        found = await pruning.prunable(database, ended_before, keys or None)
        counted = await pruning.candidates(database, found)
        for one in counted:
            rows = ", ".join(f"{number:,} {name}" for name, number in one.rows.items() if number)
            size = f"{one.about_bytes / 1e6:,.1f} MB" if one.about_bytes >= 1e5 else f"{one.about_bytes / 1e3:,.1f} kB"  # noqa: PLR2004
            say.print(f"{one.experiment.key}: {rows or 'nothing'} {'would go' if dry_run else 'to go'}, about {size}.")
        if not counted:
            say.print("No experiment that is over ended so long ago.")
        for one in [] if dry_run else counted:
            gone = await _pruned(database, one, ended_before)
            say.print(f"{one.experiment.key}: {gone:,} rows are gone.")

    done(run)


async def _pruned(database: Database, one: pruning.Candidate, ended_before: int) -> int:
    total, gone = sum(one.rows.values()), 0
    with progress_bar(f"Pruning {one.experiment.key}") as report:

        def count(removed: int) -> None:
            nonlocal gone
            gone += removed
            report(gone, total)

        return await pruning.prune(database, one.experiment, ended_before, count)


def forget(
    *,
    unit: Annotated[str, typer.Option(help="The unit, as callers name it.")],
    experiment: Annotated[str | None, typer.Option(help="Only in this experiment.")] = None,
) -> None:
    """Replace a unit's name by a token that says nothing of it, wherever it is stored. All counts stay."""
    if not 1 <= len(unit) <= LONGEST_UNIT:
        refuse("Not done", f"A unit has 1 to {LONGEST_UNIT} characters.", code=2)

    async def run(database: Database) -> Forgotten:
        return await forget_unit(database, unit, experiment)

    forgotten = done(run)
    for key, assignments in forgotten.experiments.items():
        say.print(f"{key}: {_number_of(assignments, 'assignment')}.")
    found = _number_of(len(forgotten.experiments), "experiment"), _number_of(forgotten.replies, "stored reply", "stored replies")
    say.print(f"Forgotten in {found[0]} and {found[1]}.")
    if not forgotten.log_emptied:
        say.print("The name is still in the write-ahead log, because somebody reads from it: run this again later.")


def _number_of(count: int, one: str, many: str | None = None) -> str:
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"


def register(app: typer.Typer) -> None:
    """Add them to the program."""
    for command in (backup, prune, forget):
        app.command()(command)
