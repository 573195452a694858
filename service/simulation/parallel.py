"""Blocks on several cores by joblib, or on a dask cluster through joblib's backend."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import joblib

from service.errors import InvalidValue
from service.simulation.runner import Block, Counts, play_block

_CLUSTER_HINT = "The option --cluster needs an extra: pip install 'bestarm[cluster]'"
_SECONDS_TO_CONNECT = 10


def _numbered(number: int, block: Block) -> tuple[int, Counts]:
    """The counts with the block's place, because they come in any order."""
    return number, play_block(block)


def results_of(blocks: list[Block], jobs: int, cluster: str | None) -> Iterator[tuple[int, Counts]]:
    """(place in the list, counts) of every block as it ends."""
    with ExitStack() as stack:
        if cluster is not None:
            _connect(cluster, stack)
        # Without a batch of one block a worker would hold several, and an interruption would lose them all.
        parallel = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1, pre_dispatch="3*n_jobs")
        yield from parallel(joblib.delayed(_numbered)(number, block) for number, block in enumerate(blocks))


def _connect(address: str, stack: ExitStack) -> None:
    """Send joblib's work to the cluster for as long as the stack is open."""
    try:
        from distributed import Client  # noqa: PLC0415 - an extra
    except ImportError:
        raise InvalidValue("/cluster", _CLUSTER_HINT) from None
    try:
        client = stack.enter_context(Client(address, timeout=_SECONDS_TO_CONNECT))  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise InvalidValue("/cluster", f"No dask scheduler answers at {address}: {error}") from error
    stack.enter_context(joblib.parallel_config(backend="dask", client=client))
