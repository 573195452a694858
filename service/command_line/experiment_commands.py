"""`bestarm experiment`: one experiment as a file, out of one database and into another."""

from __future__ import annotations

import gzip
import re
import sys
from pathlib import Path
from typing import IO, Annotated, cast

import typer
from pydantic import ValidationError

from service.application.commands.experiments import Described
from service.application.copies.dump import dump as dump_experiment
from service.application.copies.dump_file import DumpFile
from service.application.copies.load import Loaded, LoadRequest
from service.application.copies.load import load as load_experiment
from service.application.reads.differences import Difference
from service.command_line.console import done, progress_bar, refuse, say
from service.domain.limits import KEY_PATTERN
from service.errors import InvalidValue
from service.storage.database import Database
from service.web.api.request_schemas import ExperimentIn
from service.web.api.views import encode, experiment_view
from service.whole_file import whole_file

commands = typer.Typer(no_args_is_help=True, help="One experiment as a file: dump, load.")
_GIVEN = set(ExperimentIn.model_fields)


@commands.command("dump")
def dump(
    key: Annotated[str, typer.Argument(help="Key of the experiment.")],
    out: Annotated[Path | None, typer.Option(help="The file, compressed if it ends in .gz; else the output.")] = None,
    *,
    replace: Annotated[bool, typer.Option("--replace", help="The file may be there already.")] = False,
) -> None:
    """Write one experiment with all that has happened to it into a file. It may be in use."""

    async def write(database: Database, file: IO[bytes]) -> int:
        with progress_bar(f"Dumping {key}") as report:
            return await dump_experiment(database, key, file, report)

    async def write_whole(database: Database) -> int:
        if out is None:
            return await write(database, sys.stdout.buffer)
        with whole_file(out, replace=replace) as part, part.open("wb") as plain:
            if out.suffix != ".gz":
                return await write(database, plain)
            with gzip.GzipFile("", "wb", compresslevel=6, fileobj=plain, mtime=0) as packed:
                return await write(database, cast("IO[bytes]", packed))

    rows = done(write_whole)
    say.print(f"{key}: {rows:,} rows{f' in {out}' if out else ''}.")


@commands.command("load")
def load(
    file: Annotated[Path, typer.Argument(help="A file of `bestarm experiment dump`.")],
    key: Annotated[str | None, typer.Option("--as", help="Load it under another key.")] = None,
    *,
    replay: Annotated[
        bool, typer.Option("--replay/--no-replay", help="Repeat every decision before it is there, or only what people did.")
    ] = True,
) -> None:
    """Load an experiment from a file. It is there when all of it is, or not at all."""
    if key is not None and not re.fullmatch(KEY_PATTERN, key):
        refuse("Not done", f"{key!r} is no key: letters a to z, digits, `.`, `_` and `-`, 64 at most.", code=2)

    async def read(database: Database) -> Loaded:
        found = DumpFile(file)
        with progress_bar(f"Loading {found.header.experiment}") as report:
            return await load_experiment(database, found, LoadRequest(check_settings, key, replay, report))

    try:
        loaded = done(read)
    except Difference as difference:
        refuse("Not loaded", f"Replay finds a difference. {difference}", code=1)
    said = loaded.replayed.sentence() if replay else "What people did was replayed, its decisions were not."
    say.print(f"{loaded.key}: {loaded.rows:,} rows loaded. {said}")


def check_settings(described: Described) -> None:
    """Raise unless the API itself would take these settings and arms."""
    shown = experiment_view(described)
    given = {name: value for name, value in shown.items() if name in _GIVEN} | {"status": "running"}
    given["arms"] = [{name: arm[name] for name in ("key", "name", "value", "min_share")} for arm in shown["arms"]]
    try:
        ExperimentIn.model_validate_json(encode(given))
    except ValidationError as refused:
        first = refused.errors()[0]
        where = "/".join(map(str, first["loc"]))
        raise InvalidValue("/file", f"Such settings cannot be: {where}: {first['msg']}.") from refused


def register(app: typer.Typer) -> None:
    """Add them to the program."""
    app.add_typer(commands, name="experiment")
