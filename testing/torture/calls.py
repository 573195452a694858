"""The history of the clients: every call with its beginning, its end and its answer, one line of JSON each.

A call is written down when it ends, by the process that made it. An answer that was not heard is no answer, and so is a 5xx: what
was asked for took effect or did not, and the next call of the same operation tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

CallKind: TypeAlias = Literal["ask", "ask_many", "tell", "correct", "void", "observe", "look", "change"]
_BEYOND_CLIENTS = 500


class Call(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One request. Times are those of the machine's steady clock, in seconds; `at` is the wall clock's when it began."""

    client: str
    workload: str
    experiment: str
    kind: CallKind
    operation: str
    """The same for every attempt at the same thing. Of asks it is the idempotency key."""
    sent: dict[str, Any]
    began: float
    ended: float
    at: float
    status: int | None = None
    """None if no answer was heard."""
    answer: Any = None
    replayed: bool = False
    """The answer says that it was given before."""
    trouble: str = ""

    @property
    def is_definite(self) -> bool:
        """Is it known whether it took effect?"""
        return self.status is not None and self.status < _BEYOND_CLIENTS

    @property
    def is_acknowledged(self) -> bool:
        """Was it answered with success?"""
        return self.status in {200, 201}


class CallLog:
    """Where a client writes its calls."""

    def __init__(self, file: Path) -> None:
        self._lines = file.open("ab", buffering=0)

    def add(self, call: Call) -> None:
        """Write one down."""
        self._lines.write(msgspec.json.encode(call) + b"\n")

    def close(self) -> None:
        """Write no more."""
        self._lines.close()


def read_calls(folder: Path) -> list[Call]:
    """All calls of all clients, in the order of their beginnings."""
    return sorted(_lines(sorted(folder.glob("*.calls"))), key=lambda call: call.began)


def _lines(files: Iterable[Path]) -> Iterator[Call]:
    read = msgspec.json.Decoder(Call).decode
    for file in files:
        with file.open("rb") as lines:
            for line in lines:
                if line.endswith(b"\n"):  # a client that was killed leaves half a line
                    yield read(line)
