"""Forget: a unit's name is replaced by a token that says nothing of it, wherever it is stored; all counts stay.

A caller who names the unit again names somebody new. A request that named it and is sent again with its idempotency key is
refused as one with another body: nothing takes effect twice. Only where the key itself has the name in it, nothing of that is
left by which it could be known: such a request is a new one.
"""

from __future__ import annotations

import asyncio
import json
import zlib
from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.application.commands import ask
from service.application.commands.idempotency import NOTE
from service.application.pauses import pause_after
from service.domain import parse_assignment_id
from service.domain.limits import LONGEST_IDEMPOTENCY_KEY
from service.engine.clock import now_microseconds
from service.randomness import random_63_bits
from service.storage import forgetting
from service.storage.queries import stored_experiments

if TYPE_CHECKING:
    from service.domain import Json, StoredReply
    from service.storage.database import Database
    from service.storage.forgetting import NamedUnit

_ROWS_AT_ONCE = 200
_PAUSE = 4.0
_CHECKPOINTS = 20
_CHECKPOINT_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class Forgotten:
    """How much of a unit was found and replaced."""

    experiments: dict[str, int]
    """How many assignments, by the experiment's key."""
    replies: int
    log_emptied: bool
    """Is nothing of it in the embedded database's write-ahead log any more? True for another database."""


async def forget(database: Database, unit: str, key: str | None) -> Forgotten:
    """Replace the name in one experiment or in all."""
    async with database.reading() as connection:
        only = None if key is None else await stored_experiments.experiment_id_of(connection, key)
        found = await forgetting.experiments_with(connection, unit, key)
        draws = {named.experiment_id: _Draws(await forgetting.draws_of(connection, named)) for named in found}
        naming = [
            (experiment_id, reply)
            async for experiment_id, reply in forgetting.all_replies(connection, only)
            if _names(reply, unit, draws.get(experiment_id, _Draws({})))
        ]
    # The replies first: they are found by the unit's own draws.
    for experiment_id, reply in naming:
        async with pause_after(_PAUSE), database.writing() as connection:
            await forgetting.begin_erasing(connection)
            other_key = reply.key.replace(unit, f"forgotten-{random_63_bits():x}")[:LONGEST_IDEMPOTENCY_KEY]
            await forgetting.blank_reply(connection, experiment_id, reply, other_key, NOTE + ask.FORGOTTEN)
    replaced = {named.key: await _forget_in(database, named) for named in found}
    return Forgotten(replaced, len(naming), await _is_log_emptied(database) if found or naming else True)


async def _forget_in(database: Database, named: NamedUnit) -> int:
    """In one experiment; how many assignments have the token."""
    while True:
        async with database.reading() as connection:
            draws = await forgetting.draws_of(connection, named)
        token = forgetting.token_for(named, draws)
        newest_first = list(draws)[:_ROWS_AT_ONCE:-1]
        for start in range(0, len(newest_first), _ROWS_AT_ONCE):
            async with pause_after(_PAUSE), database.writing() as connection:
                await forgetting.begin_erasing(connection)
                some = newest_first[start : start + _ROWS_AT_ONCE]
                await forgetting.replace_draws(connection, named, token, some)
        async with database.writing() as connection:
            await forgetting.begin_erasing(connection)
            replaced = await forgetting.replace_last(connection, named, token, 2 * _ROWS_AT_ONCE, now_microseconds())
        if replaced is not None:  # else somebody asks for the unit faster than it is forgotten
            return replaced


class _Draws:
    """The draws of a unit in one experiment."""

    def __init__(self, tokens: dict[int, int]) -> None:
        self._tokens, self._numbers = tokens, list(tokens)

    def are_among(self, first: int, last: int) -> bool:
        """Is any of them one of these?"""
        place = bisect_left(self._numbers, first)
        return place < len(self._numbers) and self._numbers[place] <= last

    def has(self, assignment_id: str) -> bool:
        """Is this the id of one of them?"""
        drawn = parse_assignment_id(assignment_id)
        return drawn is not None and self._tokens.get(drawn[0]) == drawn[1]


def _names(reply: StoredReply, unit: str, draws: _Draws) -> bool:
    """Was this answer given to a request about the unit, whose draws these are?"""
    if reply.key == unit or reply.body_hash == ask.hash_of(unit):
        return True
    if reply.body.startswith(NOTE):
        named = ask.named_by_note(reply.body)[1]
        return bool(named) and draws.are_among(named[0], named[-1])
    return _tells_of(json.loads(zlib.decompress(reply.body)), unit, draws)


def _tells_of(answer: Json, unit: str, draws: _Draws) -> bool:
    """Does it name the unit, in a field or in a sentence, or one of its assignments?"""
    if isinstance(answer, dict):
        return any(_tells_of(value, unit, draws) for value in answer.values())
    if isinstance(answer, list):
        return any(_tells_of(value, unit, draws) for value in answer)
    return isinstance(answer, str) and (answer == unit or repr(unit) in answer or draws.has(answer))


async def _is_log_emptied(database: Database) -> bool:
    """Wait for a moment in which nobody reads what was there before."""
    for _ in range(_CHECKPOINTS):
        if await asyncio.to_thread(forgetting.is_log_emptied, database.url):
            return True
        await asyncio.sleep(_CHECKPOINT_SECONDS)
    return False
