"""The list at a glance: which experiments there are, in which order, and what they can be filtered by."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from service.storage.queries import listed_versions
from service.storage.queries.experiment_list import ExperimentFilter
from service.storage.queries.listed_versions import StoredOrder

if TYPE_CHECKING:
    from service.application.live.reader import Reader
    from service.domain import ExperimentVersion

PAGE = 20
# So many rows are computed for the sake of their order, once each and then again as they change; of more, only a page's.
MOST_RANKED = 200

ComputedOrder: TypeAlias = Literal[
    "verdict", "-verdict", "lift", "-lift", "share", "-share", "rate", "-rate", "started", "-started"
]
"""Orders by what is computed from an experiment's statistics."""
ListOrder: TypeAlias = StoredOrder | ComputedOrder
_STORED: dict[str, StoredOrder] = {order: order for order in ("-created_at", "created_at", "name", "-name", "status", "-status")}


@dataclass(frozen=True, slots=True)
class ListFilter:
    """Which part of the list."""

    filter: ExperimentFilter = field(default_factory=ExperimentFilter)
    order: ListOrder = "-created_at"
    page: int = 1

    @property
    def is_computed(self) -> bool:
        """Is the order one that the database does not know?"""
        return self.order not in _STORED


@dataclass(frozen=True, slots=True)
class ListPage:
    """The experiments of the page with their versions, and how many there are in all, by status."""

    found: list[tuple[str, ExperimentVersion]]
    counts: dict[str, int]
    unranked: bool
    """Are these all that the filter lets through, for the order to be computed and the page to be cut out?"""
    total: int


async def find(reader: Reader, wanted: ListFilter) -> ListPage:
    """One page of the list; or everything, where the order is computed and there is not too much."""
    stored = _STORED.get(wanted.order)
    async with reader.database.reading() as connection:
        counts = await listed_versions.count_by_status(connection, wanted.filter)
        total = sum(counts.values()) if wanted.filter.status is None else counts.get(wanted.filter.status, 0)
        everything = stored is None and total <= MOST_RANKED
        found = await listed_versions.page_of_versions(
            connection,
            wanted.filter,
            stored or "-created_at",
            skip=0 if everything else (wanted.page - 1) * PAGE,
            limit=MOST_RANKED if everything else PAGE,
        )
    return ListPage(found, counts, everything, total)


async def tags_and_owners(reader: Reader, among: tuple[str, ...] | None) -> tuple[list[str], list[str]]:
    """What there is to filter by."""
    async with reader.database.reading() as connection:
        return await listed_versions.tags_and_owners(connection, among)
