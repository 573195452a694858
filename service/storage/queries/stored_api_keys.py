"""Keys of the API: stored, changed, and what changed since a worker last looked."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from sqlalchemy import insert, inspect, or_, select, update

from service.domain.api_keys import ApiKey
from service.storage.access_tables import api_key_changes, api_keys
from service.storage.queries.change_follower import ChangeFollower, next_change

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from sqlalchemy import RowMapping
    from sqlalchemy.ext.asyncio import AsyncConnection

_LISTS = ("scopes", "experiments", "origins")


async def hold(connection: AsyncConnection) -> None:
    """Nobody else changes keys until this transaction ends."""
    await connection.execute(select(api_key_changes).with_for_update())


async def insert_key(connection: AsyncConnection, key: ApiKey) -> None:
    """One more key."""
    await connection.execute(insert(api_keys).values(**_values(key), change=await next_change(connection, api_key_changes)))


async def replace_key(connection: AsyncConnection, key: ApiKey) -> None:
    """The key as it is from now on."""
    change = await next_change(connection, api_key_changes)
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


async def were_there_any(connection: AsyncConnection) -> bool:
    """Was there ever a key? A database that is older than keys has not even the table."""
    if not await connection.run_sync(lambda sync: inspect(sync).has_table(api_key_changes.name)):
        return False
    last: int = (await connection.execute(select(api_key_changes.c.number))).scalar_one()
    return last > 0


async def changed_since(connection: AsyncConnection, change: int, limit: int) -> Sequence[tuple[int, ApiKey]]:
    """Keys that changed after this change, with the number of their last one, in its order."""
    wanted = select(api_keys).where(api_keys.c.change > change).order_by(api_keys.c.change).limit(limit)
    return [(row["change"], _key_from(row)) for row in (await connection.execute(wanted)).mappings()]


def follower() -> ChangeFollower[ApiKey]:
    """For a worker that knows all keys."""
    return ChangeFollower(api_key_changes, changed_since)


async def note_use(connection: AsyncConnection, key_ids: Collection[str], at: int, every: int) -> None:
    """These keys were used, if no worker said so within that time. No change: nobody has to know at once."""
    said_long_ago = or_(api_keys.c.last_used_at.is_(None), api_keys.c.last_used_at <= at - every)
    await connection.execute(update(api_keys).where(api_keys.c.id.in_(key_ids), said_long_ago).values(last_used_at=at))


def _values(key: ApiKey) -> dict[str, Any]:
    values = {name: getattr(key, name) for name in ApiKey.__slots__}
    lists = {name: None if values[name] is None else json.dumps(sorted(values[name])) for name in _LISTS}
    return values | lists


def _key_from(row: RowMapping) -> ApiKey:
    values = {name: row[name] for name in ApiKey.__slots__}
    lists = {name: None if row[name] is None else tuple(json.loads(row[name])) for name in _LISTS}
    return ApiKey(**(values | lists | {"digest": bytes(row["digest"]), "scopes": frozenset(lists["scopes"] or ())}))
