"""Which experiments a list shows, and in which order: by text, status, tag and owner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from sqlalchemy import ColumnElement, Select, or_, select

from service.storage.tables import DELETED, experiments

if TYPE_CHECKING:
    from service.domain import ExperimentStatus

ExperimentOrder: TypeAlias = Literal["-created_at", "created_at", "key", "-key"]


@dataclass(frozen=True, slots=True)
class ExperimentFilter:
    """Which experiments, in which order; None means any."""

    text: str | None = None
    status: ExperimentStatus | None = None
    tag: str | None = None
    owner: str | None = None
    order: ExperimentOrder = "-created_at"


def ordered(found: Select[Any], wanted: ExperimentFilter, *, after: int | None, limit: int) -> Select[Any]:
    """The part of a select of experiments that the filter lets through; `after` is the id to go on behind."""
    found = found.where(*_matching(wanted.text or ""))
    if wanted.status is not None:
        found = found.where(experiments.c.status == wanted.status)
    if wanted.owner is not None:
        found = found.where(experiments.c.owner == wanted.owner)
    if wanted.tag is not None:  # tags are kept as a JSON list, and no tag has a quotation mark in it
        found = found.where(experiments.c.tags.contains(f'"{wanted.tag}"', autoescape=True))
    # Ids are given out in the order of creation.
    by_key = wanted.order.endswith("key")
    column: ColumnElement[Any] = experiments.c.key if by_key else experiments.c.id
    downwards = wanted.order.startswith("-")
    if after is not None:
        last = select(experiments.c.key).where(experiments.c.id == after).scalar_subquery() if by_key else after
        found = found.where(column < last if downwards else column > last)
    return found.order_by(column.desc() if downwards else column).limit(limit)


def _matching(text: str) -> list[ColumnElement[bool]]:
    """Key or name contain the text, whatever its case; none that was deleted does."""
    there = experiments.c.status != DELETED
    if not text:
        return [there]
    return [there, or_(*(column.icontains(text, autoescape=True) for column in (experiments.c.key, experiments.c.name)))]
