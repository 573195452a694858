"""What a group of requests must see before it is decided, read with one statement per kind of question."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from service.domain.lookups import DUE_AT_ONCE, LookupRequest, LookupResult
from service.storage import settings_rows, traffic_rows
from service.storage.groups.statements import query_by
from service.storage.tables import assignments, observations, replies

if TYPE_CHECKING:
    from collections.abc import Callable

    from service.storage.groups.statements import Query, Reads


async def look_up(group: Reads, wanted: dict[int, LookupRequest], *, under_lock: bool) -> dict[int, LookupResult]:
    """Everything the group asked for, with one statement per kind of question, whatever the number of experiments."""
    found = {experiment_id: LookupResult() for experiment_id in wanted}
    nothing = True
    for experiment_id, want in wanted.items():
        if under_lock:
            want.ask_keys |= want.new_ask_keys
            want.reply_keys |= want.new_reply_keys
        found[experiment_id].ask_keys, found[experiment_id].reply_keys = want.ask_keys, want.reply_keys
        nothing = nothing and want.is_nothing()
    if nothing:
        return found

    async def ask(query: Query, asked: list[tuple[Any, ...]], keep: Callable[[LookupResult, Any], None]) -> None:
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


def _keep_assignment(found: LookupResult, row: Any) -> None:  # noqa: ANN401 - a row of either engine
    assignment = traffic_rows.assignment_of(row)
    found.assignments[assignment.draw] = assignment


def _keep_by_unit(found: LookupResult, row: Any) -> None:  # noqa: ANN401 - likewise
    _keep_assignment(found, row)
    found.by_unit[row["unit"]] = row["draw"]


def _keep_by_key(found: LookupResult, row: Any) -> None:  # noqa: ANN401 - likewise
    _keep_assignment(found, row)
    found.by_key[row["idempotency_key"]] = row["draw"]


def _keep_observation(found: LookupResult, row: Any) -> None:  # noqa: ANN401 - likewise
    found.observations[row["id"]] = settings_rows.observation_from(row)


def _keep_reply(found: LookupResult, row: Any) -> None:  # noqa: ANN401 - likewise
    found.replies[row["route"], row["key"]] = settings_rows.reply_from(row)


def _keep_due(found: LookupResult, row: Any) -> None:  # noqa: ANN401 - likewise
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
