"""The id of the request that is being answered: the caller's if it sent a sane one, else a new one. Logs carry it, too."""

from __future__ import annotations

import re
from contextvars import ContextVar
from typing import Protocol

from service.randomness import random_63_bits

_SANE = re.compile(rb"[A-Za-z0-9._:/+=-]{1,128}")


# In a request's scope: whose turn it is while a body is read as it comes.
BODY_PACE = "bestarm.body_pace"


class BodyPace(Protocol):
    """How a route that reads a long body says that it is the client's turn, or ours."""

    def await_body(self) -> None:
        """The client has to send more, in time."""
        ...

    def hold_body(self) -> None:
        """The client may wait for us."""
        ...


_request_id: ContextVar[str] = ContextVar("request_id", default="")


def current_request_id() -> str:
    """The id of the request being answered."""
    return _request_id.get()


def name_of(given: bytes) -> bytes:
    """A request's name: the caller's if it is sane, else a new one."""
    return given if given and _SANE.fullmatch(given) else b"%016x" % random_63_bits()


def name_request(given: bytes) -> bytes:
    """The name of the request that is being answered from here on."""
    name = name_of(given)
    _request_id.set(name.decode())
    return name
