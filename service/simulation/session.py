"""One study's work: plays cells, keeps what is finished, shows how far it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from service.errors import InvalidValue
from service.simulation.finished_blocks import FinishedBlocks
from service.simulation.runner import MOST_RUNS, Block, Cell, Counts, blocks_of, play_block

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from types import TracebackType


@dataclass(frozen=True, slots=True)
class Result:
    """A cell's errors at its checkpoints over so many runs."""

    cell: Cell
    runs: int
    errors: Counts

    @property
    def final(self) -> int:
        """Errors at the budget."""
        return self.errors[-1]


class Unfinished(Exception):  # noqa: N818 - a condition, not a failure
    """Nothing of what is needed here was played before, and nothing more is to be played."""


class Session:
    """Plays cells into a folder; used as a context.

    With `play_more` false it only gathers what the folder holds: of every cell the blocks from the first on without a hole,
    so that an interrupted study can be reported with the runs it has.
    """

    def __init__(
        self,
        folder: Path,
        *,
        runs: int,
        seed: int,
        jobs: int = 1,
        cluster: str | None = None,
        quiet: bool = False,
        play_more: bool = True,
    ) -> None:
        if not 1 <= runs <= MOST_RUNS:
            raise InvalidValue("/runs", f"The number of runs must lie between 1 and {MOST_RUNS}, not {runs}.")
        if seed < 0:
            raise InvalidValue("/seed", "The seed must not be negative.")
        if jobs < 1 and jobs != -1:
            raise InvalidValue("/jobs", "The number of jobs must be positive, or -1 for all cores.")
        self.folder, self.runs, self.seed = folder, runs, seed
        self._jobs, self._cluster, self._play_more = jobs, cluster, play_more
        self._finished = FinishedBlocks(folder)
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )
        self._progress = Progress(*columns, console=Console(stderr=True), disable=quiet)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self._progress.stop()
        self._finished.close()

    def play(self, cells: Sequence[Cell], title: str, runs: int | None = None) -> list[Result]:
        """The results of all cells, playing only what the folder does not hold yet."""
        wanted = runs or self.runs
        for cell in cells:
            cell.require_playable()
        if not self._play_more:
            return [result for cell in cells if (result := self._result(cell, wanted)).runs > 0]
        blocks = [block for cell in cells for block in blocks_of(cell, wanted, self.seed)]
        missing = [block for block in blocks if self._finished.find(block) is None]
        task = self._progress.add_task(title, total=len(blocks), completed=len(blocks) - len(missing))

        def finished(block: Block, errors: Counts) -> None:
            self._finished.add(block, errors)
            self._progress.advance(task)

        _play_blocks(missing, finished, self._jobs, self._cluster)
        return [self._result(cell, wanted) for cell in cells]

    def play_one(self, cell: Cell, title: str, runs: int | None = None) -> Result:
        """The result of one cell that the rest of a study depends on."""
        results = self.play([cell], title, runs)
        if not results:
            raise Unfinished
        return results[0]

    def _result(self, cell: Cell, runs: int) -> Result:
        """The sum over the cell's blocks, up to the first that is missing."""
        totals, counted = [0] * len(cell.checkpoints), 0
        for block in blocks_of(cell, runs, self.seed):
            found = self._finished.find(block)
            if found is None:
                break
            counted += block.runs
            totals = [total + errors for total, errors in zip(totals, found, strict=True)]
        return Result(cell, counted, tuple(totals))


def _play_blocks(blocks: list[Block], finished: Callable[[Block, Counts], None], jobs: int, cluster: str | None) -> None:
    """Play all blocks, here, on several cores or on a dask cluster; `finished` is called here, for each as it ends."""
    if cluster is None and jobs == 1:
        for block in blocks:
            finished(block, play_block(block))
        return
    from service.simulation.parallel import results_of  # noqa: PLC0415 - loads joblib, which a single core does not need

    for number, counts in results_of(blocks, jobs, cluster):
        finished(blocks[number], counts)
