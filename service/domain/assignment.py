"""One draw and what became of it. What may happen to it is in service/domain/transitions.py."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

import msgspec

from service.domain.limits import ASSIGNMENT_ID_PATTERN

AssignmentStatus: TypeAlias = Literal["pending", "rewarded", "expired", "voided"]

_DRAW_DIGITS = 11
_TOKEN_BITS = 64
_BYTES = 14  # of all digits, and of one that is left out
_PREFIX = len("asg_")
_TOKEN_AT = _PREFIX + _DRAW_DIGITS
_ID = re.compile(ASSIGNMENT_ID_PATTERN)


class AssignmentState(msgspec.Struct, frozen=True, gc=False):
    """The part of an assignment that changes and that statistics depend on; the history keeps it before and after."""

    status: AssignmentStatus
    reward: float | None
    closed: bool
    """Its numeric window has closed (always true without one): a reward now counts in the intervals."""


class Assignment(msgspec.Struct, frozen=True, gc=False):
    """A draw of an arm, for a unit or for nobody in particular."""

    draw: int
    token: int
    """Random. The id is made of draw and token, so it cannot be guessed and ids need no index of their own."""
    sequence: int
    arm: int
    unit: str | None
    reason: str
    epoch: int
    created_at: int
    expires_at: int | None
    expiry_reward: float | None
    """What a numeric expiry counts this draw as while it is silent."""
    state: AssignmentState
    rewarded_at: int | None = None
    idempotency_key: str | None = None

    @property
    def id(self) -> str:
        """What callers know the assignment by."""
        return assignment_id(self.draw, self.token)

    @property
    def due_at(self) -> int | None:
        """When the sweep has to look at it: silent ones expire, rewarded ones with a numeric window mature."""
        waits = self.state.status == "pending" or (self.state.status == "rewarded" and not self.state.closed)
        return self.expires_at if waits else None


def assignment_id(draw: int, token: int) -> str:
    """What callers know an assignment by. Bytes become hexadecimal digits in half the time that formats take."""
    return "asg_" + (draw << _TOKEN_BITS | token).to_bytes(_BYTES, "big").hex()[1:]


def draw_behind(text: str) -> int | None:
    """The draw of an assignment's id. Of a text that is none it may be any number: this is for looking it up only."""
    try:
        return int(text[_PREFIX:_TOKEN_AT], 16)
    except ValueError:
        return None


def parse_assignment_id(text: str) -> tuple[int, int] | None:
    """(draw, token) of an assignment's id, or None if it cannot be one."""
    return (int(text[_PREFIX:_TOKEN_AT], 16), int(text[_TOKEN_AT:], 16)) if _ID.fullmatch(text) else None
