"""Keys of the API: create, revoke, replace. What an administrator did to them is in the log of the instance.

The secret is in the first answer and nowhere else. So the answer that is kept for an idempotency key is without it: whoever lost
the first one revokes the key and makes another.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from service.application.commands.secret_answers import answered, first_answer
from service.domain.api_keys import ApiKey, ApiKeyKind, digest_of, new_key_id, new_secret
from service.domain.callers import PUBLIC_SCOPES
from service.domain.limits import (
    API_KEY_EXPERIMENT_PATTERN,
    API_KEY_ID_PATTERN,
    LAST_MOMENT,
    MOST_KEY_EXPERIMENTS,
    MOST_KEY_ORIGINS,
    ORIGIN_PATTERN,
)
from service.engine.clock import now_microseconds
from service.errors import ApiKeyNotFound, Conflict, InvalidValue
from service.storage.queries import stored_api_keys, stored_instance_log

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.application.commands.idempotency import Once, Rendered
    from service.domain import Json
    from service.domain.callers import Caller, Scope
    from service.storage.database import Connection, Database

_MICROSECONDS = 1_000_000
_ID = re.compile(API_KEY_ID_PATTERN)
_EXPERIMENT = re.compile(API_KEY_EXPERIMENT_PATTERN)
_ORIGIN = re.compile(ORIGIN_PATTERN)


@dataclass(frozen=True, slots=True)
class WantedKey:
    """What a new key is to be."""

    label: str
    scopes: frozenset[Scope]
    experiments: tuple[str, ...] | None = None
    expires_at: int | None = None
    kind: ApiKeyKind = "secret"
    origins: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key, and the only copy of its secret; None where the key was made before."""

    key: ApiKey
    secret: str | None


def check(wanted: WantedKey, now: int) -> None:
    """Refuse what would be a hole: public keys that may do much, administrators of little who could make themselves more."""
    _check_forms("/experiments", wanted.experiments, _EXPERIMENT, MOST_KEY_EXPERIMENTS)
    _check_forms("/origins", wanted.origins, _ORIGIN, MOST_KEY_ORIGINS)
    if wanted.expires_at is not None and wanted.expires_at <= now:
        raise InvalidValue("/expires_at", "A key that has expired already is of no use.")
    if wanted.expires_at is not None and wanted.expires_at > LAST_MOMENT:
        raise InvalidValue("/expires_at", "A year has four digits, in UTC: leave it out for a key that is good for ever.")
    if "admin" in wanted.scopes and wanted.experiments is not None:
        raise InvalidValue("/experiments", "Whoever makes keys can give themselves every experiment: leave it out.")
    if wanted.kind == "secret":
        if wanted.origins is not None:
            raise InvalidValue("/origins", "Only public keys are bound to origins: no page may hold a secret one.")
        return
    if not wanted.scopes <= PUBLIC_SCOPES:
        raise InvalidValue("/scopes", "A public key may `assign` and `reward`, and nothing else.")
    if not wanted.experiments or any("*" in one for one in wanted.experiments):
        raise InvalidValue("/experiments", "A public key is for experiments that are named one by one.")
    if not wanted.origins:
        raise InvalidValue("/origins", "A public key is for pages of named origins.")


def _check_forms(pointer: str, given: Sequence[str] | None, form: re.Pattern[str], most: int) -> None:
    """Refuse what no experiment is called, and what no browser sends: the operator's commands come without a schema."""
    if given is not None and len(given) > most:
        raise InvalidValue(pointer, f"At most {most} of them.")
    for place, one in enumerate(given or ()):
        if form.fullmatch(one) is None:
            raise InvalidValue(
                f"{pointer}/{place}", f"{one!r} is none: as `checkout-*`, or `https://shop.example` without a path."
            )


async def create(database: Database, caller: Caller, wanted: WantedKey, once: Once[NewKey]) -> Rendered:
    """A new key, with its secret."""
    caller.require("admin")
    now = now_microseconds()
    check(wanted, now)
    async with database.writing() as connection:
        await stored_api_keys.hold(connection)
        repeated = await first_answer(connection, once)
        if repeated is not None:
            return repeated
        made = _made(wanted, caller, now)
        await stored_api_keys.insert_key(connection, made.key)
        await stored_instance_log.append(connection, "key_created", _about(made.key), now, caller)
        return await answered(connection, once, made, replace(made, secret=None), now)


async def revoke(database: Database, caller: Caller, key_id: str) -> ApiKey:
    """The key is refused from now on: here at once, by every other worker within two seconds. Again, it changes nothing."""
    caller.require("admin")
    now = now_microseconds()
    async with database.writing() as connection:
        await stored_api_keys.hold(connection)  # first, as whoever rotates does: neither waits for the other with what it needs
        key = await _existing(connection, key_id)
        if key.revoked_at is not None:
            return key
        revoked = replace(key, revoked_at=now)
        await stored_api_keys.replace_key(connection, revoked)
        await stored_instance_log.append(connection, "key_revoked", _about(key), now, caller)
    return revoked


async def rotate(database: Database, caller: Caller, key_id: str, grace_seconds: int, once: Once[NewKey]) -> Rendered:
    """A successor that may do the same; the old key is good for the grace period and no longer."""
    caller.require("admin")
    now = now_microseconds()
    async with database.writing() as connection:
        await stored_api_keys.hold(connection)
        repeated = await first_answer(connection, once)
        if repeated is not None:
            return repeated
        old = await _existing(connection, key_id)
        if old.revoked_at is not None or (old.expires_at is not None and old.expires_at <= now):
            raise Conflict(f"Key {key_id} is not good any more: create another.")
        if old.successor is not None:
            raise Conflict(f"Key {key_id} has a successor already: {old.successor}.")
        ends = now + grace_seconds * _MICROSECONDS
        made = _made(WantedKey(old.label, old.scopes, old.experiments, old.expires_at, old.kind, old.origins), caller, now)
        ends = ends if old.expires_at is None else min(ends, old.expires_at)
        await stored_api_keys.replace_key(connection, replace(old, expires_at=ends, successor=made.key.id))
        await stored_api_keys.insert_key(connection, made.key)
        await stored_instance_log.append(connection, "key_rotated", _about(old) | {"successor": made.key.id}, now, caller)
        return await answered(connection, once, made, replace(made, secret=None), now)


def _about(key: ApiKey) -> dict[str, Json]:
    return {"key": key.id, "label": key.label}


def _made(wanted: WantedKey, caller: Caller, now: int) -> NewKey:
    prefix, secret = new_secret(wanted.kind)
    key = ApiKey(
        id=new_key_id(),
        kind=wanted.kind,
        prefix=prefix,
        digest=digest_of(secret.encode()),
        label=wanted.label,
        scopes=wanted.scopes,
        experiments=wanted.experiments,
        origins=wanted.origins,
        created_at=now,
        created_by=caller.id,
        expires_at=wanted.expires_at,
    )
    return NewKey(key, secret)


async def _existing(connection: Connection, key_id: str) -> ApiKey:
    if not _ID.fullmatch(key_id):
        raise ApiKeyNotFound(key_id)
    key = await stored_api_keys.key_by_id(connection, key_id, locked=True)
    if key is None:
        raise ApiKeyNotFound(key_id)
    return key
