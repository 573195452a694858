"""The command `import` of the `bestarm` program: past data into an experiment, or a new experiment of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeVar

import typer
from pydantic import BaseModel, ValidationError

from service.application.commands.import_observations import import_observations
from service.application.commands.tell import Outcome
from service.application.imports.file_columns import FIELDS, FileColumns
from service.application.imports.file_survey import Judge, PastData, Survey, survey
from service.application.imports.import_tally import ImportTally
from service.application.imports.rehearsal import Rehearsal
from service.application.imports.warm_start import create_from, require_live, was_made_of
from service.application.live.reader import Reader, WritingReader
from service.application.live.version_cache import VersionCache
from service.application.reads import experiment_descriptions
from service.application.reads.readiness import require_ready
from service.command_line.console import opened, progress_bar, reason_of, refuse, say, settings_given
from service.domain import TAKES_REWARDS, RewardSpec
from service.domain.callers import by_service
from service.domain.file_formats import FILE_FORMATS, FORMATS_BY_SUFFIX
from service.engine.writer import Writer
from service.errors import BestArmError, ExperimentNotRunning, InvalidValue
from service.storage.database import Database
from service.storage.migrate import migrate
from service.storage.pooling import refuse_pooled_transactions
from service.web.api.new_experiments import new_experiment, reward_of
from service.web.api.request_schemas import ExperimentIn, RewardIn
from service.web.problems import sentence_of

_QUEUED = 16
_LONGEST_SOURCE = 200
_WORDS: dict[Outcome, str] = {
    "recorded": "recorded",
    "duplicate": "recorded before",
    "conflict": "in conflict",
    "not_found": "of no arm",
    "invalid": "invalid",
}
Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Wish:
    """What the command line asks for."""

    key: str
    data: PastData
    digest: str
    """Of the file's content."""
    source: str
    """What the ids of lines without one begin with."""
    dry_run: bool
    skip_bad_lines: bool
    settings: dict[str, Any] | None
    """Of the experiment that is to be made; None if it must be there."""


def import_file(
    key: Annotated[str, typer.Argument(help="Key of the experiment.")],
    file: Annotated[Path, typer.Argument(help="CSV, JSON lines or Parquet, with columns arm, reward and perhaps id and time.")],
    *,
    form: Annotated[
        str | None, typer.Option("--format", help=f"One of {', '.join(FILE_FORMATS)}; left out, as the file's name ends.")
    ] = None,
    column: Annotated[list[str] | None, typer.Option(help="Another name of a column, as reward=converted.")] = None,
    ignore_other_columns: Annotated[
        bool, typer.Option("--ignore-other-columns", help="Leave out columns that are none of the four.")
    ] = False,
    source: Annotated[
        str | None, typer.Option(help="Name lines without an id by this instead of the file's content: for files that grow.")
    ] = None,
    skip_bad_lines: Annotated[bool, typer.Option("--skip-bad-lines", help="Import the others although some are bad.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would become of each line, and do nothing.")] = False,
    create: Annotated[bool, typer.Option("--create", help="Make the experiment, of the arms that the file names.")] = False,
    settings: Annotated[
        Path | None,
        typer.Option(help="Its settings: a JSON file as POST /v1/experiments takes it, without key and perhaps arms."),
    ] = None,
) -> None:
    """Tell past data to an experiment as observations. Repeated, it counts nothing twice."""
    wanted = form or FORMATS_BY_SUFFIX.get(file.suffix.lower())
    if wanted not in FILE_FORMATS:
        refuse("Not imported", f"--format is one of {', '.join(FILE_FORMATS)}.", code=2)
    if settings is not None and not create:
        refuse("Not imported", "--settings goes with --create.", code=2)
    tally = ImportTally()
    try:
        data = PastData(file, wanted, FileColumns(_named_columns(column or []), ignore_other_columns))
        digest = data.digest()
        begin = _source(source) or f"file-{digest}"
        wish = Wish(key, data, digest, begin, dry_run, skip_bad_lines, _settings(settings) if create else None)
        asyncio.run(_import(wish, tally))
    except BestArmError as trouble:
        _say_refused(tally)
        done = f" So far {_counts(tally)}; the same command goes on." if tally.lines and not dry_run else ""
        why = str(trouble) if isinstance(trouble, InvalidValue) else reason_of(trouble)
        refuse("Not imported", f"{why}{done}", code=2)
    except OSError as trouble:
        refuse("Not imported", f"{trouble.strerror or trouble}: {trouble.filename or file}.", code=2)
    _say_refused(tally)
    typer.echo(f"{key}: {'a dry run: ' if dry_run else ''}{tally.lines:,} lines: {_counts(tally)}.")
    raise typer.Exit(1 if tally.refused else 0)


async def _import(wish: Wish, tally: ImportTally) -> None:
    """Look through the file, then import it; the tally has what became of it."""
    async with opened(settings_given(), may_be_new=wish.settings is not None and not wish.dry_run) as database:
        await refuse_pooled_transactions(database)
        if wish.settings is not None and database.is_sqlite and not wish.dry_run:
            await migrate(database)
        await require_ready(database)
        is_new = wish.settings is not None and not await was_made_of(database, wish.key, wish.digest)
        judge = _judge_of_new(wish) if is_new else await _judge_of(database, wish.key)
        with progress_bar(f"Checking {wish.data.path.name}") as report:
            found = survey(wish.data, judge, report)
        if found.late:
            say.print(f"Lines that are earlier than one above them: {found.late:,}. They are told in the order of the file.")
        if found.tally.refused and not wish.skip_bad_lines and not wish.dry_run:
            tally.join(found.tally)
            _leave_unimported(wish, tally)
        made = new_experiment(_experiment_in(wish, found)) if is_new else None
        if made is not None:
            require_live(made[0])
        if wish.dry_run:
            with progress_bar(f"Rehearsing {wish.data.path.name}") as report:
                rehearsal = Rehearsal(wish.data, judge, wish.source)
                arms = None if made is None else [arm.key for arm in made[1]]
                tally.join(await (rehearsal.run(database, report) if arms is None else rehearsal.run_on_nothing(arms, report)))
            return
        async with _worker(database) as worker:
            if made is not None:
                await create_from(worker, *made, wish.digest)
            with progress_bar(f"Importing {wish.data.path.name}") as report:
                access = by_service(wish.key)
                await import_observations(worker.writer, access, wish.data, wish.source, tally=tally, report=report)


def _leave_unimported(wish: Wish, tally: ImportTally) -> NoReturn:
    """A file with bad lines is not begun with: mended, it is another file, and lines without an id would count again."""
    _say_refused(tally)
    which = f"{tally.refused:,} of {tally.lines:,} lines are bad"
    refuse(
        "Not imported",
        f"{which}, so nothing of {wish.data.path.name} was. Mend them, or import the others with --skip-bad-lines.",
        code=1,
    )


async def _judge_of(database: Database, key: str) -> Judge:
    """What an experiment that is there takes."""
    progress, records = await experiment_descriptions.describe(Reader(database, VersionCache()), key)
    if progress.experiment.status not in TAKES_REWARDS:
        raise ExperimentNotRunning(f"Experiment {key!r} is {progress.experiment.status} and takes no rewards.")
    return Judge(key, progress.experiment.reward, {record.arm.key for record in records})


def _judge_of_new(wish: Wish) -> Judge:
    """What an experiment of these settings would take."""
    given = wish.settings or {}
    arms = given.get("arms")
    named = {str(arm.get("key")) for arm in arms if isinstance(arm, dict)} if isinstance(arms, list) else None
    reward = RewardSpec() if "reward" not in given else reward_of(_validated(RewardIn, given["reward"]))
    return Judge(wish.key, reward, named)


def _experiment_in(wish: Wish, found: Survey) -> ExperimentIn:
    """The new experiment, with the arms of the file unless they are given."""
    arms = {"arms": [{"key": arm} for arm in found.arms]}
    return _validated(ExperimentIn, arms | (wish.settings or {}) | {"key": wish.key})


def _validated(model: type[Model], given: object) -> Model:
    try:
        return model.model_validate(given)
    except ValidationError as wrong:
        first = wrong.errors()[0]
        pointer = "".join(f"/{step}" for step in first["loc"])
        raise InvalidValue(pointer, f"The settings of the experiment: {pointer} {sentence_of(first)}") from wrong


def _settings(file: Path | None) -> dict[str, Any]:
    """As they are given; none means the defaults."""
    if file is None:
        return {}
    try:
        given = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as unreadable:
        raise InvalidValue("/settings", f"{file} is not JSON: {unreadable}") from unreadable
    if not isinstance(given, dict):
        raise InvalidValue("/settings", f"{file} holds no JSON object.")
    return given


def _named_columns(given: list[str]) -> dict[str, str]:
    names = dict(one.partition("=")[::2] for one in given)
    if not all(names.values()) or not names.keys() <= set(FIELDS):
        raise InvalidValue("/column", f"A column is named as reward=converted, one of {', '.join(FIELDS)}.")
    return names


def _source(given: str | None) -> str | None:
    """What ids begin with: short enough for the number of the line to follow."""
    if given is not None and not 1 <= len(given) <= _LONGEST_SOURCE:
        raise InvalidValue("/source", f"--source has 1 to {_LONGEST_SOURCE} characters.")
    return given


@asynccontextmanager
async def _worker(database: Database) -> AsyncIterator[WritingReader]:
    """A writer of this process, beside those of a service that may be running."""
    writer = Writer(database, queue_limit=_QUEUED)
    writer.start()
    try:
        yield WritingReader(database, VersionCache(), writer)
    finally:
        await writer.close()


def _say_refused(tally: ImportTally) -> None:
    for line, status, detail in tally.named:
        say.print(f"line {line:,}: {status}: {detail}", markup=False)
    if tally.refused > len(tally.named):
        say.print(f"… and {tally.refused - len(tally.named):,} more.")


def _counts(tally: ImportTally) -> str:
    shown = [f"{tally.outcomes[outcome]:,} {word}" for outcome, word in _WORDS.items() if tally.outcomes[outcome]]
    return ", ".join(shown) or "nothing"


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command("import")(import_file)
