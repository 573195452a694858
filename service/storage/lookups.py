"""What a group of requests must see before it is decided, with one statement per kind of question, and what was found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from service.domain import Assignment, ObservationRecord, StoredReply
from service.storage import records
from service.storage.groups import query_by
from service.storage.tables import assignments, observations, replies

if TYPE_CHECKING:
    from collections.abc import Callable

    from service.storage.groups import Query, Reads

Name = TypeVar("Name")
Thing = TypeVar("Thing")
# A backlog of expiries is worked off in chunks, so that asks and tells get their turn in between.
DUE_AT_ONCE = 2_000


class Wanted(msgspec.Struct):
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

    def is_nothing(self) -> bool:
        """True if there is nothing to look up."""
        asked = self.draws or self.units or self.ask_keys or self.observation_ids or self.reply_keys
        return not asked and self.due_by is None

    def forget_new(self) -> None:
        """Nobody will look for the new keys."""
        self.new_ask_keys.clear()
        self.new_reply_keys.clear()


class NotLookedUp(Exception):  # noqa: N818 - no error: the same is decided again, under the lock
    """A decision turned out to depend on something that was not looked up."""


class Found(msgspec.Struct):
    """What was there. The caller keeps it current while it decides one request after the other."""

    assignments: dict[int, Assignment] = msgspec.field(default_factory=dict)
    by_unit: dict[str, int] = msgspec.field(default_factory=dict)
    by_key: dict[str, int] = msgspec.field(default_factory=dict)
    observations: dict[str, ObservationRecord] = msgspec.field(default_factory=dict)
    replies: dict[tuple[str, str], StoredReply] = msgspec.field(default_factory=dict)
    due: list[int] = msgspec.field(default_factory=list)
    ask_keys: set[str] = msgspec.field(default_factory=set)
    reply_keys: set[tuple[str, str]] = msgspec.field(default_factory=set)
    """The keys that were looked for. Nobody knows yet whether any other was used before."""

    def overlay(self, newer: Found, wanted: Wanted) -> None:
        """What is newer stands above what was read, and for what could not be read yet. Nothing else of it comes in."""
        by_unit = _part_of(newer.by_unit, wanted.units)
        by_key = _part_of(newer.by_key, wanted.ask_keys | wanted.new_ask_keys)
        draws = {*self.assignments, *wanted.draws, *by_unit.values(), *by_key.values()}
        self.by_unit |= by_unit
        self.by_key |= by_key
        self.assignments |= _part_of(newer.assignments, draws)
        self.observations |= _part_of(newer.observations, wanted.observation_ids)
        self.replies |= _part_of(newer.replies, wanted.reply_keys | wanted.new_reply_keys)

    def update(self, newer: Found) -> None:
        """What was found, or happened, later stands above what was there."""
        self.ask_keys |= newer.ask_keys
        self.reply_keys |= newer.reply_keys
        self.assignments |= newer.assignments
        self.by_unit |= newer.by_unit
        self.by_key |= newer.by_key
        self.observations |= newer.observations
        self.replies |= newer.replies


def _part_of(whole: dict[Name, Thing], names: set[Name]) -> dict[Name, Thing]:
    return {name: whole[name] for name in names & whole.keys()}


async def look_up(group: Reads, wanted: dict[int, Wanted], *, under_lock: bool) -> dict[int, Found]:
    """Everything the group asked for, with one statement per kind of question, whatever the number of experiments."""
    found = {experiment_id: Found() for experiment_id in wanted}
    nothing = True
    for experiment_id, want in wanted.items():
        if under_lock:
            want.ask_keys |= want.new_ask_keys
            want.reply_keys |= want.new_reply_keys
        found[experiment_id].ask_keys, found[experiment_id].reply_keys = want.ask_keys, want.reply_keys
        nothing = nothing and want.is_nothing()
    if nothing:
        return found

    async def ask(query: Query, asked: list[tuple[Any, ...]], keep: Callable[[Found, Any], None]) -> None:
        if asked:
            for row in await group.rows(query, *zip(*asked, strict=True)):
                keep(found[row["experiment_id"]], row)

    def each(name: str) -> list[tuple[Any, ...]]:
        return [(e, value) for e, want in wanted.items() for value in getattr(want, name)]

    await ask(BY_DRAW, each("draws"), _keep_assignment)
    await ask(_BY_UNIT, each("units"), _keep_by_unit)
    await ask(_BY_KEY, each("ask_keys"), _keep_by_key)
    await ask(_OBSERVATIONS, each("observation_ids"), _keep_observation)
    await ask(REPLIES, [(e, *route_and_key) for e, route_and_key in each("reply_keys")], _keep_reply)
    for experiment_id, want in wanted.items():
        if want.due_by is not None:
            await ask(_DUE, [(experiment_id, want.due_by)], _keep_due)
    return found


def _keep_assignment(found: Found, row: Any) -> None:  # noqa: ANN401 - a row of either engine
    assignment = records.assignment_of(row)
    found.assignments[assignment.draw] = assignment


def _keep_by_unit(found: Found, row: Any) -> None:  # noqa: ANN401 - likewise
    _keep_assignment(found, row)
    found.by_unit[row["unit"]] = row["draw"]


def _keep_by_key(found: Found, row: Any) -> None:  # noqa: ANN401 - likewise
    _keep_assignment(found, row)
    found.by_key[row["idempotency_key"]] = row["draw"]


def _keep_observation(found: Found, row: Any) -> None:  # noqa: ANN401 - likewise
    found.observations[row["id"]] = records.observation_from(row)


def _keep_reply(found: Found, row: Any) -> None:  # noqa: ANN401 - likewise
    found.replies[row["route"], row["key"]] = records.reply_from(row)


def _keep_due(found: Found, row: Any) -> None:  # noqa: ANN401 - likewise
    _keep_assignment(found, row)
    found.due.append(row["draw"])


BY_DRAW = query_by(
    assignments,
    ["bigint", "bigint"],
    "t.experiment_id = w.a AND t.draw = w.b",
    of_one="t.experiment_id = $1::bigint AND t.draw = ANY($2::bigint[])",
)
# The difference keeps the planner from reading all of the experiment by its primary key, which looks as good while it is small.
_BY_KEY = query_by(assignments, ["bigint", "text"], "t.experiment_id - w.a = 0 AND t.idempotency_key = w.b")
_BY_UNIT = query_by(
    assignments,
    ["bigint", "text"],
    "t.experiment_id = w.a AND t.draw = (SELECT max(l.draw) FROM assignments l WHERE l.experiment_id = w.a AND l.unit = w.b)",
)
_DUE = query_by(
    assignments,
    ["bigint", "bigint"],
    "t.experiment_id = w.a AND t.due_at <= w.b",
    tail=f"ORDER BY t.due_at, t.draw LIMIT {DUE_AT_ONCE}",
)
_OBSERVATIONS = query_by(observations, ["bigint", "text"], "t.experiment_id = w.a AND t.id = w.b")
REPLIES = query_by(replies, ["bigint", "text", "text"], "t.experiment_id = w.a AND t.route = w.b AND t.key = w.c")
