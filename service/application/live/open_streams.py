"""How many streams are open in this worker, in all and by key: each holds a connection for as long as its client likes."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

from service.domain.limits import MOST_STREAMS, MOST_STREAMS_OF_KEY
from service.errors import Overloaded, TooManyStreams

if TYPE_CHECKING:
    from collections.abc import Iterator

    from service.domain.callers import Caller


class OpenStreams:
    """One of a kind per worker."""

    def __init__(self, most: int = MOST_STREAMS, most_of_key: int = MOST_STREAMS_OF_KEY, what: str = "streams") -> None:
        self._most, self._most_of_key, self._what = most, most_of_key, what
        self._of_key: Counter[str | None] = Counter()

    def has_place(self) -> bool:
        """Is there room for one more, whoever asks?"""
        return self._of_key.total() < self._most

    def require_place(self, caller: Caller) -> None:
        """Refuse one too many. Where there are no keys, only all of them together count."""
        if caller.id is not None and self._of_key[caller.id] >= self._most_of_key:
            raise TooManyStreams(f"This key has {self._most_of_key} {self._what} in this worker already; close one.")
        if not self.has_place():
            raise Overloaded(f"This worker has {self._most:,} {self._what}, as many as it may; try again in a moment.")

    @contextmanager
    def one_of(self, caller: Caller) -> Iterator[None]:
        """One more, for as long as it lasts."""
        self.require_place(caller)
        self._of_key[caller.id] += 1
        try:
            yield
        finally:
            self._of_key[caller.id] -= 1
            if not self._of_key[caller.id]:
                del self._of_key[caller.id]
