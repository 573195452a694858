"""Which experiments a list shows, and in which order: by text, status, tag, owner and time of creation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from sqlalchemy import ColumnElement, or_, select

from service.domain.limits import MOST_VISITED_EXPERIMENTS
from service.storage.tables import HIDDEN, experiments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import RowMapping
    from sqlalchemy.ext.asyncio import AsyncConnection

    from service.domain import ExperimentStatus

ExperimentOrder: TypeAlias = Literal["-created_at", "created_at", "key", "-key"]


@dataclass(frozen=True, slots=True)
class ExperimentFilter:
    """Which experiments, in which order; None means any. `since` and `until` are of their creation, in microseconds."""

    text: str | None = None
    status: ExperimentStatus | None = None
    tag: str | None = None
    owner: str | None = None
    order: ExperimentOrder = "-created_at"
    since: int | None = None
    until: int | None = None
    among: tuple[str, ...] | None = None
    """Keys, or patterns with `*`, that the caller may see."""

    @property
    def by_key(self) -> bool:
        """In the order of keys, not of creation? Ids are given out in the order of creation."""
        return self.order.endswith("key")

    @property
    def downwards(self) -> bool:
        """From the last to the first."""
        return self.order.startswith("-")

    @property
    def column(self) -> ColumnElement[Any]:
        """What they are ordered by."""
        return experiments.c.key if self.by_key else experiments.c.id

    def carried(self) -> list[ColumnElement[bool]]:
        """What an index leads to, in either order: those of an owner, else of a status, else all that were not deleted."""
        if self.owner is not None:
            return [experiments.c.owner == self.owner]
        if self.status is not None:
            return [experiments.c.status == self.status]
        return [experiments.c.status.not_in(HIDDEN)]

    def looked_for(self) -> list[ColumnElement[bool]]:
        """What has to be looked for among what an index leads to."""
        wanted = of_these(self.among) + (_containing(self.text) if self.text else [])
        if self.owner is not None:
            wanted.append(experiments.c.status.not_in(HIDDEN) if self.status is None else experiments.c.status == self.status)
        if self.tag is not None:  # tags are kept as a JSON list, and no tag has a quotation mark in it
            wanted.append(experiments.c.tags.contains(f'"{self.tag}"', autoescape=True))
        if self.since is not None:
            wanted.append(experiments.c.created_at >= self.since)
        if self.until is not None:
            wanted.append(experiments.c.created_at < self.until)
        return wanted


@dataclass(frozen=True, slots=True)
class ExperimentRows:
    """What was found; and, where the search stopped before the page was full, the id to go on behind."""

    rows: Sequence[RowMapping]
    go_on_behind: int | None


async def page_of_rows(
    connection: AsyncConnection, columns: Sequence[Any], wanted: ExperimentFilter, *, after: int | None, limit: int
) -> ExperimentRows:
    """These columns of the experiments that the filter lets through; `after` is the id to go on behind.

    What no index leads to is looked for among a bounded number of experiments, in their order.
    """
    inside, column = wanted.carried(), wanted.column
    order = column.desc() if wanted.downwards else column
    if after is not None:
        last = select(experiments.c.key).where(experiments.c.id == after).scalar_subquery() if wanted.by_key else after
        inside.append(column < last if wanted.downwards else column > last)
    looked_for, visited = wanted.looked_for(), None
    if looked_for:
        bound = select(experiments.c.id, column.label("place")).where(*inside).order_by(order)
        visited = (await connection.execute(bound.offset(MOST_VISITED_EXPERIMENTS - 1).limit(1))).first()
        inside += looked_for
        if visited is not None:
            inside.append(column >= visited.place if wanted.downwards else column <= visited.place)
    found = (await connection.execute(select(*columns).where(*inside).order_by(order).limit(limit))).mappings().all()
    return ExperimentRows(found, visited.id if visited is not None and len(found) < limit else None)


def of_these(patterns: Sequence[str] | None) -> list[ColumnElement[bool]]:
    """Those that a caller may see; None means all."""
    if patterns is None:
        return []
    exact = [pattern for pattern in patterns if "*" not in pattern]
    alike = [_written_with_stars(pattern) for pattern in patterns if "*" in pattern]
    return [or_(experiments.c.key.in_(exact), *(experiments.c.key.like(text, escape="\\") for text in alike))]


def _written_with_stars(pattern: str) -> str:
    """As the database writes a pattern: keys may hold `_`, which it takes for any character."""
    return pattern.replace("_", "\\_").replace("*", "%")


def _containing(text: str) -> list[ColumnElement[bool]]:
    return [or_(*(column.icontains(text, autoescape=True) for column in (experiments.c.key, experiments.c.name)))]
