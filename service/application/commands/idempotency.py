"""Idempotency keys: the same key and body give the first answer again; the same key with another body is refused.

A single ask of a running experiment that is not sticky keeps its key with its draw; where an ask may draw nothing it keeps a note
(service/application/commands/ask.py). All other creating requests, and the steps of an experiment's life, keep their first answer
here, in the transaction that has the effect, so two requests with one key in flight have one effect and both get its answer. An
answer that can be told again from what is stored anyway is kept as a note of a few bytes: a batch of asks by its draws.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

from service.domain import StoredReply
from service.domain.lookups import NotLookedUp
from service.errors import BestArmError, IdempotencyKeyReused

if TYPE_CHECKING:
    from service.domain.callers import Scope
    from service.domain.lookups import LookupRequest
    from service.engine.ledger import Ledger
    from service.engine.queue import Command

Result = TypeVar("Result")
NOTE = b"note:"  # no compressed answer begins like this


def _no_note(_result: object) -> bytes | None:
    return None


@dataclass(frozen=True, slots=True)
class Rendered:
    """An answer: fresh, or the first one given to this key."""

    created: bool
    """Something is there that was not before; otherwise something changed, or was found."""
    body: bytes | Callable[[], bytes]
    """Or how to write it, which can wait until the transaction is through."""
    replayed: bool = False
    note: bytes | None = None
    """What was stored instead of a first answer that can be told again."""

    def written(self) -> bytes:
        """The answer as bytes."""
        return self.body if isinstance(self.body, bytes) else self.body()


@dataclass(frozen=True, slots=True)
class Once(Generic[Result]):
    """The caller's key on a route, the fingerprint of the body, and how an answer is written."""

    route: str
    key: str | None
    body_hash: str
    creates: bool | Callable[[Result], bool]
    """Does a fresh request create something, or how that follows from the result."""
    render: Callable[[Result], bytes]
    note: Callable[[Result], bytes | None] = _no_note
    """A few words from which a long answer can be told again; they begin with NOTE."""

    def repeat(self, stored: StoredReply) -> Rendered:
        """The stored answer, if it was given to the same body."""
        if stored.body_hash != self.body_hash:
            raise IdempotencyKeyReused("This Idempotency-Key was used before with another body.")
        if stored.body.startswith(NOTE):
            return Rendered(stored.created, b"", replayed=True, note=stored.body)
        return Rendered(stored.created, zlib.decompress(stored.body), replayed=True)

    def answer(self, result: Result, now: int) -> tuple[Rendered, StoredReply | None]:
        """The fresh answer, and what to store of it (nothing without a key)."""
        created = self.creates if isinstance(self.creates, bool) else self.creates(result)
        if self.key is None:
            return Rendered(created, partial(self.render, result)), None
        body: bytes | Callable[[], bytes] = partial(self.render, result)
        kept = self.note(result)
        if kept is None:
            body = self.render(result)
            kept = zlib.compress(body, level=1)
        return Rendered(created, body), StoredReply(self.route, self.key, self.body_hash, created, kept, now)


@dataclass(frozen=True, slots=True)
class OnceCommand(Generic[Result]):
    """A command that takes effect once per idempotency key."""

    once: Once[Result]
    command: Command[Result]

    @property
    def scope(self) -> Scope:
        """What it needs is what the command needs."""
        return self.command.scope

    @property
    def by_unit(self) -> bool:
        """It names what the command names."""
        return self.command.by_unit

    @property
    def weight(self) -> int:
        """As heavy as what it wraps."""
        return self.command.weight

    def request_lookups(self, lookups: LookupRequest, ledger: Ledger) -> None:
        """Look for the first answer, too."""
        if self.once.key is not None:
            # Where it may well be refused, it is better to look first.
            may_be_new = ledger.experiment.status == "running"
            (lookups.new_reply_keys if may_be_new else lookups.reply_keys).add((self.once.route, self.once.key))
        self.command.request_lookups(lookups, ledger)

    def apply(self, ledger: Ledger, now: int) -> Rendered:
        """Repeat the first answer, or apply the command and keep its answer."""
        name = self.once.route, self.once.key or ""
        stored = ledger.seen.replies.get(name)
        if stored:
            return self.once.repeat(stored)
        try:
            result = self.command.apply(ledger, now)
        except BestArmError as refused:
            # Refused now; but the first time it may have been answered.
            if self.once.key is None or name in ledger.seen.reply_keys:
                raise
            raise NotLookedUp from refused
        rendered, reply = self.once.answer(result, now)
        if reply:
            ledger.keep_reply(reply)
        return rendered
