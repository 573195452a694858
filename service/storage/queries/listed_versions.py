"""What the dashboard's list asks of the database: how many experiments there are, which are on a page, and their labels."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from sqlalchemy import ColumnElement, and_, case, func, or_, select

from service.domain import ExperimentVersion
from service.storage.queries.experiment_list import of_these
from service.storage.tables import HIDDEN, experiments

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from service.storage.queries.experiment_list import ExperimentFilter

StoredOrder: TypeAlias = Literal["-created_at", "created_at", "name", "-name", "status", "-status"]
"""The orders of the list that the database knows."""
_LIFE = ("draft", "running", "paused", "concluded", "archived")


def _let_through(wanted: ExperimentFilter) -> list[ColumnElement[bool]]:
    """What the filter asks for, whatever the status; key or name contain its text, whatever its case. None that was deleted."""
    asked = [experiments.c.status.not_in(HIDDEN), *of_these(wanted.among)]
    if wanted.text:
        asked.append(or_(*(column.icontains(wanted.text, autoescape=True) for column in (experiments.c.key, experiments.c.name))))
    if wanted.owner is not None:
        asked.append(experiments.c.owner == wanted.owner)
    if wanted.tag is not None:  # tags are kept as a JSON list, and no tag has a quotation mark in it
        asked.append(experiments.c.tags.contains(f'"{wanted.tag}"', autoescape=True))
    return asked


async def count_by_status(connection: AsyncConnection, wanted: ExperimentFilter) -> dict[str, int]:
    """How many experiments the filter would let through, by status."""
    counted = select(experiments.c.status, func.count()).where(*_let_through(wanted)).group_by(experiments.c.status)
    return {status: int(count) for status, count in await connection.execute(counted)}


async def page_of_versions(
    connection: AsyncConnection, wanted: ExperimentFilter, order: StoredOrder, *, skip: int, limit: int
) -> list[tuple[str, ExperimentVersion]]:
    """Key and version of the experiments on one page of the list."""
    page = select(experiments.c.key, experiments.c.id, experiments.c.version).where(*_let_through(wanted))
    if wanted.status is not None:
        page = page.where(experiments.c.status == wanted.status)
    page = page.order_by(*_by(order)).offset(skip).limit(limit)
    return [(key, ExperimentVersion(experiment, version)) for key, experiment, version in await connection.execute(page)]


def _by(order: StoredOrder) -> list[ColumnElement[Any]]:
    """Those that are alike follow each other from the newest on. Ids are given out in the order of creation."""
    newest_first = experiments.c.id.desc()
    name = order.removeprefix("-")
    if name == "created_at":
        return [newest_first if order.startswith("-") else experiments.c.id]
    column: ColumnElement[Any] = func.lower(experiments.c.name)
    if name == "status":
        column = case({status: place for place, status in enumerate(_LIFE)}, value=experiments.c.status)
    return [column.desc() if order.startswith("-") else column, newest_first]


async def tags_and_owners(connection: AsyncConnection, among: tuple[str, ...] | None) -> tuple[list[str], list[str]]:
    """All tags and all owners of the experiments that a caller may see, each once, in the order of the alphabet."""
    there = and_(experiments.c.status.not_in(HIDDEN), *of_these(among))
    tagged = await connection.execute(select(experiments.c.tags).where(there, experiments.c.tags != "[]").distinct())
    owned = await connection.execute(select(experiments.c.owner).where(there, experiments.c.owner.is_not(None)).distinct())
    return sorted({tag for (tags,) in tagged for tag in json.loads(tags)}), sorted(owner for (owner,) in owned if owner)
