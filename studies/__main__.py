"""The command `python -m studies`: plays a study into a folder, and writes the results page from such folders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from service.errors import InvalidValue
from service.simulation.session import Result, Session
from service.simulation.simulation_options import (
    DEFAULT_SEED,
    Cluster,
    Jobs,
    Out,
    Runs,
    Seed,
    failures_as_sentences,
    open_session,
)
from studies import budgets, guarded, minimax_rates, real_world, sharpness, short_horizon
from studies.pages.results_page import write_page
from studies.study_command import study_command
from studies.summaries.summary_files import write_summary

ReportOnly = Annotated[bool, typer.Option("--report-only", help="Play nothing more; report what is finished.")]

STUDIES: dict[str, Callable[[Session], list[Result]]] = {
    minimax_rates.NAME: minimax_rates.run,
    real_world.NAME: real_world.run,
    budgets.NAME: budgets.run,
    short_horizon.NAME: short_horizon.run,
    sharpness.NAME: sharpness.run,
    guarded.NAME: guarded.run,
}
_ALL = "all"
_RUNS = 10_000
# Among all studies these would take as long as the others together; alone they get what is asked for.
_LONG_STUDIES = {sharpness.NAME: 1000, guarded.NAME: 500}
_HELP = {
    minimax_rates.NAME: "The worst rate over the ten instances, beside the published ones.",
    real_world.NAME: "Error over time on the Open Bandit and MovieLens instances.",
    budgets.NAME: "Instance 9 at T = 2,000, 10,000 and 20,000.",
    short_horizon.NAME: "T = 1,000 with CR starting as late as SR.",
    sharpness.NAME: "Beyond the paper: sharper weights against every baseline.",
    guarded.NAME: "Beyond the paper: which guarded weights to take, and how they stand.",
    _ALL: "All of these.",
}

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Reproduce the paper's experiments.",
)


def _play(study: str, *, runs: int, jobs: int, out: Path, seed: int, cluster: str | None, play_more: bool) -> None:
    """One study into its own folder; after Ctrl-C reported with what is finished."""
    folder = out / study

    def played(*, more: bool) -> list[Result]:
        with open_session(folder, runs, seed, jobs, cluster, play_more=more) as session:
            return STUDIES[study](session)

    settings = {"study": study, "seed": seed, "runs": runs, "command": study_command(study, runs, seed)}
    try:
        results = played(more=play_more)
    except KeyboardInterrupt:
        _report(study, folder, played(more=False), settings)
        raise
    _report(study, folder, results, settings)


def _report(study: str, folder: Path, results: Sequence[Result], settings: dict[str, Any]) -> None:
    """The study's files, if it has anything to report."""
    if not results:
        raise InvalidValue("/out", f"Nothing of {study} is finished in {folder}.")
    write_summary(study, folder, results, settings)
    Console().print(f"Written to {folder}")


def _command_for(study: str, default_runs: int) -> Callable[..., None]:
    """The command that plays this study, or all of them."""

    def command(
        *,
        runs: Runs = default_runs,
        jobs: Jobs = 1,
        out: Out = Path("reproduction"),
        seed: Seed = DEFAULT_SEED,
        cluster: Cluster = None,
        report_only: ReportOnly = False,
    ) -> None:
        with failures_as_sentences():
            for name in STUDIES if study == _ALL else (study,):
                wanted = min(runs, _LONG_STUDIES.get(name, runs)) if study == _ALL else runs
                _play(name, runs=wanted, jobs=jobs, out=out, seed=seed, cluster=cluster, play_more=not report_only)

    return command


def page(
    folder: Annotated[Path, typer.Option("--from", help="The folder of a full run.")] = Path("docs/reproduction"),
    to: Annotated[Path, typer.Option(help="The page to write.")] = Path("docs/reproduction.md"),
) -> None:
    """Write the results page from the result files."""
    with failures_as_sentences():
        write_page(folder, to)
        Console().print(f"Written to {to}")


for _study, _text in _HELP.items():
    app.command(_study, help=_text)(_command_for(_study, _LONG_STUDIES.get(_study, _RUNS)))
app.command()(page)

if __name__ == "__main__":
    app()
