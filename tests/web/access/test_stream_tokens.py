"""Tokens for streams of flags: for whom there are any."""

from __future__ import annotations

import asyncio

import pytest

from service.application.commands.idempotency import Once
from service.application.commands.manage_keys import NewKey, WantedKey, create
from service.application.live.known_callers import KnownCallers
from service.domain.callers import SERVICE
from service.errors import Unauthorized
from service.storage.database import Database
from service.web.access.stream_tokens import bearer_of, token_for

ADMIN = "a key that an operator made up"


def test_only_a_stored_key_has_a_token(database_url: str) -> None:
    """Addresses are written down by proxies: nothing in them may be tried against guesses of a key that a person made up."""
    once: Once[NewKey] = Once("keys", None, "", creates=True, render=lambda made: (made.secret or "").encode())

    async def run() -> None:
        database = Database(database_url)
        callers = KnownCallers(database, ADMIN)
        try:
            secret = (await create(database, SERVICE, WantedKey("a page's", frozenset({"assign"})), once)).written()
            admin, caller = await callers.identified(ADMIN.encode()), await callers.identified(secret)
            token = token_for(callers, caller)
            assert token is not None
            assert await bearer_of(callers, token) == caller
            assert token_for(callers, admin) is None
            with pytest.raises(Unauthorized):
                await bearer_of(callers, "admin" + token[token.index(".") :])
        finally:
            await database.close()

    asyncio.run(run())
