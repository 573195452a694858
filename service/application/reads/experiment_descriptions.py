"""Experiments as they are stored: one with its arms, one arm of it, a page of the list."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from service.domain import Arm, Progress
from service.domain.limits import FEW_ENTRIES, MOST_ARMS_ON_PAGE
from service.errors import ArmNotFound
from service.storage.queries import stored_experiments, stored_sizes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.application.commands.experiments import Described
    from service.application.live.reader import Reader
    from service.storage.database import Connection
    from service.storage.queries.experiment_list import ExperimentFilter
    from service.storage.queries.stored_experiments import FoundPage
    from service.storage.queries.stored_sizes import StoredSize

Listed = tuple[Progress, list[Arm]]
"""An experiment with its arms, but without their values."""

# A page of so many is read and written in about ten milliseconds.
_FEW_LISTED_ARMS = 1_000


@dataclass(frozen=True, slots=True)
class PageOfList:
    """Which page of the list of experiments: of which of them, behind which id, and how many."""

    filter: ExperimentFilter
    before: int | None
    size: int


@dataclass(frozen=True, slots=True)
class ListedPage:
    """What was found, and how many of it the page shows; what is left tells that another page follows."""

    found: list[Listed]
    shown: int
    go_on_behind: int | None
    """Where the search stopped before the page was full."""


async def size_of(reader: Reader, key: str) -> StoredSize:
    """How large an experiment is."""
    async with reader.database.reading() as connection:
        return await stored_sizes.size_by_key(connection, key)


async def describe(reader: Reader, key: str) -> Described:
    """One experiment with its arms."""
    async with reader.database.reading() as connection:
        return await stored_experiments.experiment_by_key(connection, key)


async def describe_if_small(reader: Reader, key: str) -> Described | None:
    """The same, or None if it is so large that it is better read in a lane."""
    async with reader.database.reading() as connection:
        return await stored_experiments.small_experiment_by_key(connection, key)


async def describe_arm(reader: Reader, key: str, arm: str) -> Arm:
    """One arm, read without the others."""
    async with reader.database.reading() as connection:
        found = await stored_experiments.arm_by_key(connection, key, arm)
        if found is None:
            await stored_experiments.experiment_id_of(connection, key)  # which of the two is missing
            raise ArmNotFound(key, arm)
        return found


async def list_page(reader: Reader, wanted: PageOfList) -> ListedPage:
    """A page of experiments; it ends early where they would have too many arms together."""
    async with reader.database.reading() as connection:
        page = await _page(connection, wanted)
        return await _with_listed_arms(connection, page, _shown(page.found, wanted.size))


async def list_small_page(reader: Reader, wanted: PageOfList) -> ListedPage | None:
    """The same, or None if there are so many experiments or arms that it is better read in a lane."""
    if wanted.size > FEW_ENTRIES:
        return None
    async with reader.database.reading() as connection:
        page = await _page(connection, wanted)
        shown = _shown(page.found, wanted.size)
        many = sum(arms for _, arms in page.found[:shown]) > _FEW_LISTED_ARMS
        return None if many else await _with_listed_arms(connection, page, shown)


async def _page(connection: Connection, wanted: PageOfList) -> FoundPage:
    """One more than asked for, with how many arms each has."""
    return await stored_experiments.page_of_experiments(connection, wanted.filter, before=wanted.before, limit=wanted.size + 1)


def _shown(found: Sequence[tuple[Progress, int]], size: int) -> int:
    """How many of them fit on a page: at least one."""
    together = accumulate(arms for _, arms in found[:size])
    return max(1, sum(arms <= MOST_ARMS_ON_PAGE for arms in together))


async def _with_listed_arms(connection: Connection, page: FoundPage, shown: int) -> ListedPage:
    arms = await stored_experiments.listed_arms(connection, [progress.experiment.id for progress, _ in page.found[:shown]])
    found = [(progress, arms.get(progress.experiment.id, [])) for progress, _ in page.found]
    return ListedPage(found, shown, page.go_on_behind)
