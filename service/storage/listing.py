"""A page of the list, found by text and status."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import ColumnElement, func, or_, select

from service.storage.tables import experiments

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection


def _matching(text: str) -> list[ColumnElement[bool]]:
    """Key or name contain the text, whatever its case."""
    if not text:
        return []
    return [or_(*(column.icontains(text, autoescape=True) for column in (experiments.c.key, experiments.c.name)))]


async def count_by_status(connection: AsyncConnection, text: str) -> dict[str, int]:
    """How many experiments match the text, by status."""
    wanted = select(experiments.c.status, func.count()).where(*_matching(text)).group_by(experiments.c.status)
    return {status: int(count) for status, count in await connection.execute(wanted)}


async def page_of_versions(
    connection: AsyncConnection, *, text: str, status: str | None, skip: int, limit: int
) -> list[tuple[str, int]]:
    """Key and version of the experiments on one page of the list, newest first."""
    wanted = select(experiments.c.key, experiments.c.version).where(*_matching(text))
    if status is not None:
        wanted = wanted.where(experiments.c.status == status)
    wanted = wanted.order_by(experiments.c.id.desc()).offset(skip).limit(limit)
    return [(key, int(version)) for key, version in await connection.execute(wanted)]
