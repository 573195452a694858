"""Keys of the API: stored, changed, and what changed since a worker last looked."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from sqlalchemy import insert, select, update

from service.domain.api_keys import ApiKey
from service.storage.access_tables import api_key_changes, api_keys

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from sqlalchemy import RowMapping
    from sqlalchemy.ext.asyncio import AsyncConnection

_LISTS = ("scopes", "experiments", "origins")


async def _next_change(connection: AsyncConnection) -> int:
    """The number of the change that this transaction makes; the next one waits for its end."""
    moved = update(api_key_changes).values(number=api_key_changes.c.number + 1).returning(api_key_changes.c.number)
    number: int = (await connection.execute(moved)).scalar_one()
    return number


async def hold(connection: AsyncConnection) -> None:
    """Nobody else changes keys until this transaction ends."""
    await connection.execute(select(api_key_changes).with_for_update())


async def insert_key(connection: AsyncConnection, key: ApiKey) -> None:
    """One more key."""
    await connection.execute(insert(api_keys).values(**_values(key), change=await _next_change(connection)))


async def replace_key(connection: AsyncConnection, key: ApiKey) -> None:
    """The key as it is from now on."""
    change = await _next_change(connection)
    await connection.execute(update(api_keys).where(api_keys.c.id == key.id).values(**_values(key), change=change))


async def key_by_id(connection: AsyncConnection, key_id: str, *, locked: bool = False) -> ApiKey | None:
    """One key; locked, it stays as it is until this transaction ends."""
    wanted = select(api_keys).where(api_keys.c.id == key_id)
    row = (await connection.execute(wanted.with_for_update() if locked else wanted)).mappings().first()
    return _key_from(row) if row else None


async def page_of_keys(connection: AsyncConnection, *, before: int | None, limit: int) -> list[tuple[int, ApiKey]]:
    """Keys with their numbers, newest first, revoked ones included."""
    wanted = select(api_keys).order_by(api_keys.c.number.desc()).limit(limit)
    found = await connection.execute(wanted if before is None else wanted.where(api_keys.c.number < before))
    return [(row["number"], _key_from(row)) for row in found.mappings()]


async def last_change(connection: AsyncConnection) -> int:
    """The number of the last change; 0 if there never was a key."""
    number: int = (await connection.execute(select(api_key_changes.c.number))).scalar_one()
    return number


async def changed_since(connection: AsyncConnection, change: int, limit: int) -> Sequence[tuple[int, ApiKey]]:
    """Keys that changed after this change, with the number of their last one, in its order."""
    wanted = select(api_keys).where(api_keys.c.change > change).order_by(api_keys.c.change).limit(limit)
    return [(row["change"], _key_from(row)) for row in (await connection.execute(wanted)).mappings()]


async def note_use(connection: AsyncConnection, key_ids: Collection[str], at: int) -> None:
    """These keys were used. No change: nobody has to know at once."""
    await connection.execute(update(api_keys).where(api_keys.c.id.in_(key_ids)).values(last_used_at=at))


def _values(key: ApiKey) -> dict[str, Any]:
    values = {name: getattr(key, name) for name in ApiKey.__slots__}
    lists = {name: None if values[name] is None else json.dumps(sorted(values[name])) for name in _LISTS}
    return values | lists


def _key_from(row: RowMapping) -> ApiKey:
    values = {name: row[name] for name in ApiKey.__slots__}
    lists = {name: None if row[name] is None else tuple(json.loads(row[name])) for name in _LISTS}
    return ApiKey(**(values | lists | {"digest": bytes(row["digest"]), "scopes": frozenset(lists["scopes"] or ())}))
