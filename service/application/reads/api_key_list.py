"""Keys of the API, for those who administer them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from service.domain.limits import API_KEY_ID_PATTERN
from service.errors import ApiKeyNotFound
from service.storage.queries import stored_api_keys

if TYPE_CHECKING:
    from service.application.live.reader import Reader
    from service.domain.api_keys import ApiKey

_ID = re.compile(API_KEY_ID_PATTERN)


async def page_of_keys(reader: Reader, before: int | None, limit: int) -> list[tuple[int, ApiKey]]:
    """Keys with their numbers, newest first."""
    async with reader.database.reading() as connection:
        return await stored_api_keys.page_of_keys(connection, before=before, limit=limit)


async def key(reader: Reader, key_id: str) -> ApiKey:
    """One key."""
    if not _ID.fullmatch(key_id):
        raise ApiKeyNotFound(key_id)  # before it meets a database that could not even compare it
    async with reader.database.reading() as connection:
        found = await stored_api_keys.key_by_id(connection, key_id)
    if found is None:
        raise ApiKeyNotFound(key_id)
    return found
