"""Blocks on several cores by joblib, or on a dask cluster through joblib's backend."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from multiprocessing import current_process
from typing import Any

import joblib

from service.errors import InvalidValue
from service.simulation.runner import Block, Counts, play_block

_CLUSTER_HINT = "The option --cluster needs an extra: pip install 'bestarm[cluster]'"
_SECONDS_TO_CONNECT = 10
_SECONDS_TO_NOTICE = 1.0
_interrupted = threading.Event()


def _numbered(number: int, block: Block) -> tuple[int, Counts]:
    """The counts with the block's place, because they come in any order."""
    if current_process().name.startswith("LokyProcess") and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the first one ends the others
    return number, play_block(block)


def results_of(blocks: list[Block], jobs: int, cluster: str | None) -> Iterator[tuple[int, Counts]]:
    """(place in the list, counts) of every block as it ends."""
    with ExitStack() as stack:
        _expect_an_interruption(stack)
        if cluster is not None:
            _connect(cluster, stack)
        # Without a batch of one block a worker would hold several, and an interruption would lose them all.
        parallel = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1, pre_dispatch="3*n_jobs")
        yield from parallel(joblib.delayed(_numbered)(number, block) for number, block in enumerate(blocks))


def _expect_an_interruption(stack: ExitStack) -> None:
    """Note Ctrl-C as soon as it comes, in the main thread, which is the only one that hears of it."""
    handle = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handle):
        return

    def note(number: int, frame: Any) -> None:  # noqa: ANN401 - signal's own argument
        _interrupted.set()
        handle(number, frame)

    signal.signal(signal.SIGINT, note)
    stack.callback(signal.signal, signal.SIGINT, handle)
    threading.excepthook = _report_unless_interrupted


def _report_unless_interrupted(failure: Any) -> None:  # noqa: ANN401 - threading's own arguments
    """After Ctrl-C the pool's own threads may trip over workers that are gone already: nobody needs to know."""
    if not _interrupted.wait(_SECONDS_TO_NOTICE):
        threading.__excepthook__(failure)


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
