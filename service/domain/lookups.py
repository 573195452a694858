"""What requests must see before they can be decided, and what was found."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from service.domain.assignment import Assignment
from service.domain.changes import ObservationRecord, StoredReply
from service.domain.events import Event
from service.domain.findings import Finding

Name = TypeVar("Name")
Thing = TypeVar("Thing")

# A backlog of expiries is worked off in chunks, so that asks and tells get their turn in between.
DUE_AT_ONCE = 2_000


class LookupRequest(msgspec.Struct):
    """What the requests of one experiment need to see before they can be decided."""

    draws: set[int] = msgspec.field(default_factory=set)
    units: set[str] = msgspec.field(default_factory=set)
    ask_keys: set[str] = msgspec.field(default_factory=set)
    observation_ids: set[str] = msgspec.field(default_factory=set)
    reply_keys: set[tuple[str, str]] = msgspec.field(default_factory=set)
    new_ask_keys: set[str] = msgspec.field(default_factory=set)
    new_reply_keys: set[tuple[str, str]] = msgspec.field(default_factory=set)
    """Keys whose requests have an effect if they are new. Without the lock that is found out when the effect is written."""
    due_by: int | None = None
    """The assignments that the sweep has to look at by this time, DUE_AT_ONCE at most."""
    findings_since: int | None = None
    """The findings that hold, and what may have ended some after this version."""

    def is_nothing(self) -> bool:
        """True if there is nothing to look up."""
        asked = self.draws or self.units or self.ask_keys or self.observation_ids or self.reply_keys
        return not asked and self.due_by is None and self.findings_since is None

    def want_findings(self, since: int) -> None:
        """The findings that hold, and what may have ended some since then; the earliest wish counts."""
        self.findings_since = since if self.findings_since is None else min(since, self.findings_since)

    def forget_new(self) -> None:
        """Nobody will look for the new keys."""
        self.new_ask_keys.clear()
        self.new_reply_keys.clear()


class NotLookedUp(Exception):  # noqa: N818 - no error: the same is decided again, under the lock
    """A decision turned out to depend on something that was not looked up."""


class LookupResult(msgspec.Struct):
    """What was there. The caller keeps it current while it decides one request after the other."""

    assignments: dict[int, Assignment] = msgspec.field(default_factory=dict)
    by_unit: dict[str, int] = msgspec.field(default_factory=dict)
    by_key: dict[str, int] = msgspec.field(default_factory=dict)
    observations: dict[str, ObservationRecord] = msgspec.field(default_factory=dict)
    replies: dict[tuple[str, str], StoredReply] = msgspec.field(default_factory=dict)
    due: list[int] = msgspec.field(default_factory=list)
    findings: list[Finding] | None = None
    """None while nobody looked."""
    audited_since: list[Event] = msgspec.field(default_factory=list)
    observed_since: bool = False
    """The events that may have ended findings since a version, and whether there was an observation."""
    ask_keys: set[str] = msgspec.field(default_factory=set)
    reply_keys: set[tuple[str, str]] = msgspec.field(default_factory=set)
    """The keys that were looked for. Nobody knows yet whether any other was used before."""

    def overlay(self, newer: LookupResult, wanted: LookupRequest) -> None:
        """What is newer stands above what was read, and for what could not be read yet. Nothing else of it comes in."""
        by_unit = _part_of(newer.by_unit, wanted.units)
        by_key = _part_of(newer.by_key, wanted.ask_keys | wanted.new_ask_keys)
        draws = {*self.assignments, *wanted.draws, *by_unit.values(), *by_key.values()}
        self.by_unit |= by_unit
        self.by_key |= by_key
        self.assignments |= _part_of(newer.assignments, draws)
        self.observations |= _part_of(newer.observations, wanted.observation_ids)
        self.replies |= _part_of(newer.replies, wanted.reply_keys | wanted.new_reply_keys)

    def update(self, newer: LookupResult) -> None:
        """What was found, or happened, later stands above what was there."""
        if self.findings is None:
            self.findings, self.audited_since = newer.findings, newer.audited_since
            self.observed_since = newer.observed_since
        self.ask_keys |= newer.ask_keys
        self.reply_keys |= newer.reply_keys
        self.assignments |= newer.assignments
        self.by_unit |= newer.by_unit
        self.by_key |= newer.by_key
        self.observations |= newer.observations
        self.replies |= newer.replies


def _part_of(whole: dict[Name, Thing], names: set[Name]) -> dict[Name, Thing]:
    return {name: whole[name] for name in names & whole.keys()}
