"""The options that all simulating commands share, and how these commands begin and fail.

Nothing here imports numba before a command runs, so that `bestarm serve` starts fast and without the extra `sim`.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from service.domain import RewardKind
from service.errors import BestArmError, InvalidValue
from service.simulation.environments import REWARD_KINDS

if TYPE_CHECKING:
    from service.simulation.session import Session

DEFAULT_SEED = 20260
_BAD_INPUT = 2
_INTERRUPTED = 130
_EXTRA_WITH = {"numba": "sim", "joblib": "sim", "vl_convert": "sim", "distributed": "cluster", "dask": "cluster"}

Runs = Annotated[int, typer.Option(help="Runs of every cell.")]
Jobs = Annotated[int, typer.Option(help="Cores to use; -1 for all.")]
Seed = Annotated[int, typer.Option(help="Results depend on it and not on the number of cores.")]
Out = Annotated[Path, typer.Option(help="Folder for the results; a study goes on where it stopped in it.")]
Cluster = Annotated[str | None, typer.Option(help="Address of a dask scheduler, instead of --jobs.")]


def numbers(text: str) -> list[float]:
    """Comma-separated numbers."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InvalidValue("/means", f"Give numbers separated by commas, not {text!r}.") from None


def reward_kind(text: str) -> RewardKind:
    """By the API's word, or by the family of distributions."""
    for family, word in REWARD_KINDS.items():
        if text in (family, word):
            return word
    raise InvalidValue("/kind", f"There are no {text!r} rewards. Kinds: {', '.join(REWARD_KINDS.values())}.")


@contextmanager
def failures_as_sentences() -> Iterator[None]:
    """Bad input and missing extras as one sentence and exit code 2; Ctrl-C keeps what is finished."""
    try:
        yield
    except BestArmError as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(_BAD_INPUT) from None
    except ImportError as error:
        extra = _EXTRA_WITH.get((error.name or "").split(".")[0])
        if extra is None:
            raise
        typer.echo(f"Error: this command needs an extra: pip install 'bestarm[{extra}]'", err=True)
        raise typer.Exit(_BAD_INPUT) from None
    except KeyboardInterrupt:
        typer.echo("Interrupted. What is finished is kept; the same command goes on from there.", err=True)
        raise typer.Exit(_INTERRUPTED) from None


def open_session(folder: Path, runs: int, seed: int, jobs: int, cluster: str | None, *, play_more: bool = True) -> Session:
    """A session after making sure that the simulator can run at all."""
    importlib.import_module("numba")
    from service.simulation.session import Session  # noqa: PLC0415 - after the check

    return Session(folder, runs=runs, seed=seed, jobs=jobs, cluster=cluster, play_more=play_more)
