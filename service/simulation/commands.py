"""The commands `simulate`, `plan` and `reproduce` of the `bestarm` program.

Nothing here imports numba before a command runs, so that `bestarm serve` starts fast and without the extra `sim`.
"""

from __future__ import annotations

import importlib
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from service.errors import BestArmError, InvalidValue
from service.simulation.environments import KINDS, Environment, Kind, instance, of_means

if TYPE_CHECKING:
    from service.simulation.planning import Answer
    from service.simulation.session import Result, Session

STUDIES = ("minimax-rates", "real-world", "budgets", "short-horizon", "sharpness")
DEFAULT_SEED = 20260
_BAD_INPUT = 2
_INTERRUPTED = 130
_NEEDS = {"numba": "sim", "joblib": "sim", "vl_convert": "charts", "distributed": "cluster", "dask": "cluster"}

Runs = Annotated[int, typer.Option(help="Runs of every cell.")]
Jobs = Annotated[int, typer.Option(help="Cores to use; -1 for all.")]
Seed = Annotated[int, typer.Option(help="Results depend on it and not on the number of cores.")]
Out = Annotated[Path, typer.Option(help="Folder for the results; a study goes on where it stopped in it.")]
Cluster = Annotated[str | None, typer.Option(help="Address of a dask scheduler, instead of --jobs.")]
Delay = Annotated[int, typer.Option(help="Draws decided before a reward is known.")]
Loss = Annotated[float, typer.Option(help="Part of the rewards that never come.")]
RandomDelay = Annotated[bool, typer.Option("--random-delay", help="The delay varies, geometric with that mean.")]
ReportOnly = Annotated[bool, typer.Option("--report-only", help="Play nothing more; report what is finished.")]
KindOption = Annotated[str, typer.Option("--kind", help=f"Rewards: {', '.join(KINDS)}.")]


@contextmanager
def clear_failures() -> Iterator[None]:
    """Bad input and missing extras as one sentence and exit code 2; Ctrl-C keeps what is finished."""
    try:
        yield
    except BestArmError as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(_BAD_INPUT) from None
    except ImportError as error:
        extra = _NEEDS.get((error.name or "").split(".")[0])
        if extra is None:
            raise
        typer.echo(f"Error: this command needs an extra: pip install 'bestarm[{extra}]'", err=True)
        raise typer.Exit(_BAD_INPUT) from None
    except KeyboardInterrupt:
        typer.echo("Interrupted. What is finished is kept; the same command goes on from there.", err=True)
        raise typer.Exit(_INTERRUPTED) from None


def _session(folder: Path, runs: int, seed: int, jobs: int, cluster: str | None, *, play_more: bool = True) -> Session:
    """A session after making sure that the simulator can run at all."""
    importlib.import_module("numba")
    from service.simulation.session import Session  # noqa: PLC0415 - after the check

    return Session(folder, runs=runs, seed=seed, jobs=jobs, cluster=cluster, play_more=play_more)


def _numbers(text: str) -> list[float]:
    """Comma-separated numbers."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InvalidValue("/means", f"Means are numbers separated by commas, not {text!r}.") from None


def _kind(text: str) -> Kind:
    for kind in KINDS:
        if kind == text:
            return kind
    raise InvalidValue("/kind", f"There are no {text!r} rewards. Kinds: {', '.join(KINDS)}.")


def _environment(name: str | None, means: str | None, kind: str) -> Environment:
    """The instance or the means, exactly one of them."""
    if (name is None) == (means is None):
        raise InvalidValue("/instance", "Give either --instance or --means.")
    if name is not None:
        return instance(name)
    return of_means(_numbers(means or ""), _kind(kind))


def _command_line() -> str:
    return shlex.join(["bestarm", *sys.argv[1:]])


def simulate(
    *,
    budget: Annotated[int, typer.Option(help="Draws of every run.")],
    instance: Annotated[str | None, typer.Option(help="1 to 10, open_bandit or movielens.")] = None,
    means: Annotated[str | None, typer.Option(help="The arms' means, as 0.1,0.2,…")] = None,
    policies: Annotated[str, typer.Option(help="Policies to compare, separated by commas.")] = "simple_tracking,sr",
    kind: KindOption = "gaussian",
    delay: Delay = 0,
    loss: Loss = 0.0,
    random_delay: RandomDelay = False,
    runs: Runs = 1000,
    seed: Seed = DEFAULT_SEED,
    jobs: Jobs = 1,
    out: Out = Path("simulation"),
    cluster: Cluster = None,
) -> None:
    """Compare policies on one instance."""
    with clear_failures():
        environment = _environment(instance, means, kind).with_traffic(delay, loss, geometric=random_delay)
        names = [name.strip() for name in policies.split(",") if name.strip()]
        from service.simulation.studies.comparison import run  # noqa: PLC0415 - loads the simulator

        with _session(out, runs, seed, jobs, cluster) as session:
            results = run(session, environment, names, budget)
        from service.simulation.reports import write_curves, write_tables  # noqa: PLC0415 - as above

        write_tables(out, results, {"study": "simulate", "seed": seed, "runs": runs, "command": _command_line()})
        write_curves(out, results, "curves", f"{environment.label}: probability of error")
        _show([(r.cell.policy, r.final, r.runs) for r in results], out)


def _show(rows: list[tuple[str, int, int]], out: Path) -> None:
    """The outcome on the screen."""
    from service.simulation.metrics import wilson  # noqa: PLC0415 - loads scipy

    table = Table("policy", "errors", "runs", "probability of error", "95% interval")
    for policy, errors, runs in rows:
        low, value, high = wilson(errors, runs)
        table.add_row(policy, str(errors), str(runs), f"{value:.4f}", f"{low:.4f} to {high:.4f}")
    console = Console()
    console.print(table)
    console.print(f"Written to {out}")


def plan(
    *,
    arms: Annotated[int | None, typer.Option(help="Number of arms.")] = None,
    baseline: Annotated[float, typer.Option(help="The mean of the arms that are not better.")] = 0.0,
    lift: Annotated[float | None, typer.Option(help="The smallest improvement worth finding.")] = None,
    means: Annotated[str | None, typer.Option(help="All means, instead of arms, baseline and lift.")] = None,
    kind: KindOption = "bernoulli",
    deviation: Annotated[float, typer.Option(help="Standard deviation of gaussian rewards.")] = 1.0,
    error: Annotated[float, typer.Option(help="The probability of a wrong recommendation that is acceptable.")] = 0.05,
    delay: Delay = 0,
    loss: Loss = 0.0,
    random_delay: RandomDelay = False,
    policies: Annotated[str, typer.Option(help="Anytime policies.")] = "simple_tracking,almost_tracking,uniform",
    runs: Runs = 1000,
    seed: Seed = DEFAULT_SEED,
    jobs: Jobs = 1,
    out: Out = Path("plan"),
    cluster: Cluster = None,
) -> None:
    """How many draws an experiment will need."""
    with clear_failures():
        from service.simulation import planning, reports  # noqa: PLC0415 - loads the simulator

        given = _numbers(means) if means is not None else []
        environment = planning.planned_environment(
            arms=arms, baseline=baseline, lift=lift, means=given, kind=_kind(kind), deviation=deviation
        ).with_traffic(delay, loss, geometric=random_delay)
        names = [name.strip() for name in policies.split(",") if name.strip()]
        with _session(out, runs, seed, jobs, cluster) as session:
            answers = planning.make_plan(session, environment, error, names)
        results = [answer.result for answer in answers]
        settings = {"study": "plan", "seed": seed, "runs": runs, "error": error, "command": _command_line()}
        reports.write_tables(out, results, settings)
        reports.write_curves(out, results, "plan", "probability of error while the experiment runs")
        _show_plan(answers, error, out)


def _show_plan(answers: list[Answer], error: float, out: Path) -> None:
    """The plan on the screen."""
    from service.simulation.planning import can_be_sure  # noqa: PLC0415 - loads the simulator

    table = Table("policy", f"draws until the error is {error:g}", "surely (95%)", "runs")
    for answer in answers:
        longest = f"more than {answer.result.cell.budget:,}"
        draws = f"{answer.draws:,}" if answer.draws else longest
        unsure = longest if can_be_sure(answer.result.runs, error) else "too few runs to tell"
        surely = f"{answer.surely:,}" if answer.surely else unsure
        table.add_row(answer.policy, draws, surely, str(answer.result.runs))
    console = Console()
    console.print(table)
    console.print(f"Written to {out}")


def _reproduce(study: str, *, runs: int, jobs: int, out: Path, seed: int, cluster: str | None, play_more: bool) -> None:
    """One study into its own folder; after Ctrl-C reported with what is finished."""
    folder = out / study
    module = importlib.import_module(f"service.simulation.studies.{study.replace('-', '_')}")

    def played(*, more: bool) -> list[Result]:
        with _session(folder, runs, seed, jobs, cluster, play_more=more) as session:
            found: list[Result] = module.run(session)
            return found

    settings: dict[str, str | int] = {
        "study": study,
        "seed": seed,
        "runs": runs,
        "command": f"bestarm reproduce {study} --runs {runs} --seed {seed}",
    }
    try:
        results = played(more=play_more)
    except KeyboardInterrupt:
        _write(study, folder, played(more=False), settings)
        raise
    _write(study, folder, results, settings)


def _write(study: str, folder: Path, results: list[Result], settings: dict[str, str | int]) -> None:
    """The study's files, if it has anything to report."""
    from service.simulation.summaries import write_summary  # noqa: PLC0415 - loads the simulator

    if not results:
        raise InvalidValue("/out", f"Nothing of {study} is finished in {folder}.")
    write_summary(study, folder, results, settings)
    Console().print(f"Written to {folder}")


def _study_command(study: str, default_runs: int) -> Callable[..., None]:
    def command(
        *,
        runs: Runs = default_runs,
        jobs: Jobs = 1,
        out: Out = Path("reproduction"),
        seed: Seed = DEFAULT_SEED,
        cluster: Cluster = None,
        report_only: ReportOnly = False,
    ) -> None:
        with clear_failures():
            for name in STUDIES if study == "all" else (study,):
                # Among all studies it would take as long as the others together; alone it gets what is asked for.
                wanted = min(runs, _SHARPNESS_RUNS) if (study, name) == ("all", "sharpness") else runs
                _reproduce(name, runs=wanted, jobs=jobs, out=out, seed=seed, cluster=cluster, play_more=not report_only)

    return command


_SHARPNESS_RUNS = 1000
_SUMMARIES = {
    "minimax-rates": "The worst rate over the ten instances, beside the published ones.",
    "real-world": "Error over time on the Open Bandit and MovieLens instances.",
    "budgets": "Instance 9 at T = 2,000, 10,000 and 20,000.",
    "short-horizon": "T = 1,000 with CR starting as late as SR.",
    "sharpness": "Beyond the paper: sharper weights against every baseline.",
    "all": "All of these.",
}


def page(
    folder: Annotated[Path, typer.Option("--from", help="The folder of a full run.")] = Path("docs/reproduction"),
    to: Annotated[Path, typer.Option(help="The page to write.")] = Path("docs/reproduction.md"),
) -> None:
    """Write the results page from the result files."""
    with clear_failures():
        from service.simulation.page import write_page  # noqa: PLC0415 - loads scipy

        write_page(folder, to)
        Console().print(f"Written to {to}")


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    app.command("simulate")(simulate)
    app.command("plan")(plan)
    reproduce = typer.Typer(no_args_is_help=True, help="Reproduce the paper's experiments.")
    for study, summary in _SUMMARIES.items():
        default = _SHARPNESS_RUNS if study == "sharpness" else 10_000
        reproduce.command(study, help=summary)(_study_command(study, default))
    reproduce.command("page")(page)
    app.add_typer(reproduce, name="reproduce")
