"""The command `export` of the `bestarm` program: an experiment's data as a file, straight from the database."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Annotated

import typer

from service.application.reads.export import EXPORTED, ExportOrder
from service.command_line.console import progress_bar, reason_of, refuse, run_ready, say, time_given
from service.domain.file_formats import FILE_FORMATS, FORMATS_BY_SUFFIX, require_format
from service.errors import BestArmError
from service.storage.database import Database
from service.web.exports.export_file import FileOrder, Piece, file_pieces
from service.whole_file import whole_file

_STANDARD_OUTPUT = Path("-")


def export(
    key: Annotated[str, typer.Argument(help="Key of the experiment.")],
    *,
    of: Annotated[str, typer.Option(help=f"One of {', '.join(EXPORTED)}.")] = "assignments",
    form: Annotated[
        str | None, typer.Option("--format", help=f"One of {', '.join(FILE_FORMATS)}; left out, as the file's name ends, or csv.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The file, or - for standard output; left out, KEY-OF.FORMAT.")] = None,
    after: Annotated[int, typer.Option(min=0, help="Only rows with a higher sequence: to go on.")] = 0,
    since: Annotated[str | None, typer.Option(help="From this time on, as 2026-01-01T12:00:00Z.")] = None,
    until: Annotated[str | None, typer.Option(help="Before this time.")] = None,
    arm: Annotated[str | None, typer.Option(help="Only this arm.")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="The file may be there already; it is replaced at the end.")] = False,
) -> None:
    """Write an experiment's data to a file: whole, as of one moment, or not at all. Units are personal data."""
    form = form or FORMATS_BY_SUFFIX.get("" if out is None else out.suffix.lower(), "csv")
    if of not in EXPORTED or form not in FILE_FORMATS:
        known = ", ".join(EXPORTED if of not in EXPORTED else FILE_FORMATS)
        refuse("Not exported", f"{of if of not in EXPORTED else form!r} is not one of {known}.", code=2)
    order = ExportOrder(key, of, after, time_given(since), time_given(until), arm)
    wanted = FileOrder(order, form)
    file = out or Path(wanted.file_name)
    try:
        require_format(wanted.format)
        with _written(file, replace=replace) as stream:
            last = run_ready(lambda database: _export(database, wanted, stream))
    except BestArmError as trouble:
        refuse("Not exported", reason_of(trouble), code=2)
    except OSError as trouble:
        refuse("Not exported", f"{trouble.strerror or trouble}: {file}.", code=1)
    where = "" if file == _STANDARD_OUTPUT else f" in {file}"
    say.print(f"{last.rows:,} rows{where}, as of version {last.version:,}; the last has sequence {last.last:,}.", markup=False)


async def _export(database: Database, wanted: FileOrder, stream: IO[bytes]) -> Piece:
    with progress_bar(f"Exporting {wanted.order.key}") as report:
        last = Piece(b"", 0)
        async for last in file_pieces(database.row_source, wanted):
            stream.write(last.content)
            report(last.last - wanted.order.after, last.version - wanted.order.after)
        return last


@contextmanager
def _written(file: Path, *, replace: bool) -> Iterator[IO[bytes]]:
    """In its place once it is whole."""
    if file == _STANDARD_OUTPUT:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    if file.exists() and not replace:
        refuse("Not exported", f"{file} is there already; --replace replaces it.", code=2)
    with whole_file(file, replace=replace) as part, part.open("wb") as stream:
        yield stream


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command("export")(export)
