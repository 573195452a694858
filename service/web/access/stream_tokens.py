"""A page that watches its flags cannot send its key: an EventSource has no headers. So it is given a token for that alone.

The token names its key and the time it is good until, signed with the key's digest, which every worker knows and nobody else. It
ends with its key, and is good for nothing but to hear that something has changed.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from typing import TYPE_CHECKING

from service.application.live.known_callers import ADMIN_ID
from service.engine.clock import now_microseconds
from service.errors import Unauthorized

if TYPE_CHECKING:
    from service.application.live.known_callers import KnownCallers
    from service.domain.callers import Caller

_TOKEN = re.compile(r"(key_[0-9a-f]{20})\.([0-9]{1,12})\.([0-9a-f]{64})")
# Tokens end together, twice a day: one that is asked for again is the same, so that a page keeps its connection. None is good for
# less than one step, or more than two.
_STEP_SECONDS = 43_200
_MICROSECONDS = 1_000_000


def _signature(digest: bytes, text: str) -> str:
    return hmac.new(digest, b"a stream of flags until " + text.encode(), hashlib.sha256).hexdigest()


def token_for(callers: KnownCallers, caller: Caller) -> str | None:
    """A token for this caller; None where nobody needs one, or the caller has no stored key.

    Addresses are written down on the way, and what is signed with a key that an operator made up could be tried against guesses.
    """
    digest = callers.digest_of_key(caller.id)
    if caller.id in {None, ADMIN_ID} or digest is None:
        return None
    until = str((now_microseconds() // (_STEP_SECONDS * _MICROSECONDS) + 2) * _STEP_SECONDS)
    return f"{caller.id}.{until}.{_signature(digest, until)}"


async def bearer_of(callers: KnownCallers, token: str) -> Caller:
    """The caller that the token was made for."""
    await callers.require_fresh()
    read = _TOKEN.fullmatch(token)
    digest = callers.digest_of_key(read[1]) if read else None
    if read is None or digest is None or not hmac.compare_digest(read[3], _signature(digest, read[2])):
        raise Unauthorized("unknown")
    caller = callers.known(digest)
    if caller is None or int(read[2]) * _MICROSECONDS <= now_microseconds():
        raise Unauthorized("expired")
    return caller
