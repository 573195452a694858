"""What a service says to its PostgreSQL, read as far as it takes to know when a transaction that writes is committed.

Every message but the first ones has a letter, its length and its text. A transaction is committed by a query of its own
(`COMMIT`), or, where none was begun, by the end of the one statement that it is: the `Sync` after an `Execute`. A group of asks
that fits into a single statement has its commit there.
"""

from __future__ import annotations

import re
import struct

_WRITES = re.compile(rb"\b(INSERT INTO|UPDATE|DELETE FROM)\b", re.IGNORECASE)
# Before a connection speaks in letters it may ask for encryption, which has this number in place of the protocol's.
_ENCRYPTION = 80_877_103


class CommitRecogniser:
    """One connection, from its beginning on."""

    def __init__(self) -> None:
        self._unread = bytearray()
        self._has_greeted = False
        self._is_in_transaction = self._has_written = False
        self._executed_write = False
        """Since the last sync."""
        self._writing: dict[bytes, bool] = {}
        """Prepared statements by their names: does it write?"""
        self._portals: dict[bytes, bool] = {}

    def has_commit(self, said: bytes) -> bool:
        """Does this, the next that was said, complete a message that commits what was written?"""
        self._unread += said
        found = False
        while (message := self._next_message()) is not None:
            found = self._commits(*message) or found
        return found

    def _next_message(self) -> tuple[bytes, bytes] | None:
        unread, letters = self._unread, int(self._has_greeted)
        if len(unread) < letters + 4:
            return None
        end = letters + struct.unpack_from("!i", unread, letters)[0]
        if len(unread) < end:
            return None
        letter, text = bytes(unread[:letters]), bytes(unread[letters + 4 : end])
        del unread[:end]
        if not letter:
            self._has_greeted = struct.unpack_from("!i", text)[0] != _ENCRYPTION
        return letter, text

    def _commits(self, letter: bytes, text: bytes) -> bool:
        if letter == b"P":
            name, statement, _ = text.split(b"\0", 2)
            self._writing[name] = bool(_WRITES.search(statement))
        elif letter == b"B":
            portal, name, _ = text.split(b"\0", 2)
            self._portals[portal] = self._writing.get(name, False)
        elif letter == b"E":
            self._executed_write |= self._portals.get(text.split(b"\0", 1)[0], False)
        elif letter == b"S":
            return self._synced()
        elif letter == b"Q":
            return self._asked(text.rstrip(b"\0; \n").upper())
        return False

    def _synced(self) -> bool:
        wrote, self._executed_write = self._executed_write, False
        self._has_written |= wrote and self._is_in_transaction
        return wrote and not self._is_in_transaction

    def _asked(self, query: bytes) -> bool:
        if query.startswith(b"BEGIN"):
            self._is_in_transaction, self._has_written = True, False
            return False
        if query in {b"COMMIT", b"ROLLBACK"}:
            wrote, self._is_in_transaction, self._has_written = self._has_written, False, False
            return wrote and query == b"COMMIT"
        wrote = bool(_WRITES.search(query))
        self._has_written |= wrote and self._is_in_transaction
        return wrote and not self._is_in_transaction
