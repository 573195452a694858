"""The command `simulate` of the `bestarm` program.

Nothing here imports numba before a command runs, so that `bestarm serve` starts fast and without the extra `sim`.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Column, Table

from service.errors import InvalidValue
from service.simulation.environments import REWARD_KINDS, Environment, Kind, instance, of_means
from service.simulation.simulation_options import (
    DEFAULT_SEED,
    Cluster,
    Jobs,
    Out,
    Runs,
    Seed,
    failures_as_sentences,
    numbers,
    open_session,
    reward_kind,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.simulation.session import Result

Delay = Annotated[int, typer.Option(help="Draws decided before a reward is known.")]
Loss = Annotated[float, typer.Option(help="Part of the rewards that never come.")]
RandomDelay = Annotated[bool, typer.Option("--random-delay", help="The delay varies, geometric with that mean.")]
KindOption = Annotated[str, typer.Option("--kind", help=f"Rewards: {', '.join(REWARD_KINDS.values())}.")]
PoliciesOption = Annotated[str, typer.Option(help="Policies, separated by commas; variants as simple_tracking:s=1.5:guard=0.25.")]


def _names(text: str) -> list[str]:
    """Comma-separated names."""
    return [name.strip() for name in text.split(",") if name.strip()]


def _kind(text: str) -> Kind:
    """The family of distributions."""
    return next(kind for kind, word in REWARD_KINDS.items() if word == reward_kind(text))


def _environment(name: str | None, means: str | None, kind: str) -> Environment:
    """The instance or the means, exactly one of them."""
    if (name is None) == (means is None):
        raise InvalidValue("/instance", "Give either --instance or --means.")
    if name is not None:
        return instance(name)
    return of_means(numbers(means or ""), _kind(kind))


def _command_line() -> str:
    return shlex.join(["bestarm", *sys.argv[1:]])


def simulate(
    *,
    budget: Annotated[int, typer.Option(help="Draws of every run.")],
    instance: Annotated[str | None, typer.Option(help="1 to 10, open_bandit or movielens.")] = None,
    means: Annotated[str | None, typer.Option(help="The arms' means, as 0.1,0.2,…")] = None,
    policies: PoliciesOption = "auto,sr",
    kind: KindOption = "real",
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
    with failures_as_sentences():
        environment = _environment(instance, means, kind).with_traffic(delay, loss, geometric=random_delay)
        from service.simulation.policy_comparison import compare  # noqa: PLC0415 - loads the simulator

        with open_session(out, runs, seed, jobs, cluster) as session:
            results = compare(session, environment, _names(policies), budget)
        from service.simulation.result_files import write_curves, write_tables  # noqa: PLC0415 - as above

        write_tables(out, results, {"study": "simulate", "seed": seed, "runs": runs, "command": _command_line()})
        write_curves(out, results, "curves", f"{environment.label}: probability of error")
        _print_errors(results, out)


def _print_errors(results: Sequence[Result], out: Path) -> None:
    """The errors of every policy on the screen."""
    from service.simulation.error_intervals import wilson  # noqa: PLC0415 - loads scipy

    # Variants differ at their ends: a name is folded where the screen is narrow, never cut.
    table = Table(Column("policy", overflow="fold"), "errors", "runs", "probability of error", "95% interval")
    for result in results:
        low, value, high = wilson(result.final, result.runs)
        interval = f"{low:.4f} to {high:.4f}"
        table.add_row(result.cell.policy, str(result.final), str(result.runs), f"{value:.4f}", interval)
    _print_written(table, out)


def _print_written(table: Table, out: Path) -> None:
    """The table, and where its files are."""
    console = Console()
    console.print(table)
    console.print(f"Written to {out}")


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command("simulate")(simulate)
