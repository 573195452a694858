"""What a group of requests must see before it is decided, read with one statement per kind of question."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from service.domain.lookups import DUE_AT_ONCE, LookupRequest, LookupResult
from service.storage import settings_rows, traffic_rows
from service.storage.groups.statements import query_by
from service.storage.tables import AUDITED_ONLY, OBSERVED_ONLY, assignments, events, findings, observations, replies

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
    await _look_up_findings(group, wanted, found)
    return found


async def _look_up_findings(group: Reads, wanted: dict[int, LookupRequest], found: dict[int, LookupResult]) -> None:
    """The findings that hold, and what may have ended some since."""
    asked = [(e, want.findings_since) for e, want in wanted.items() if want.findings_since is not None]
    if not asked:
        return
    for experiment_id, _ in asked:
        found[experiment_id].findings = []
    experiment_ids, since = zip(*asked, strict=True)
    for query, columns, keep in (
        (_FINDINGS, (experiment_ids,), _keep_finding),
        (_AUDITED_SINCE, (experiment_ids, since), _keep_audited),
        (_OBSERVED_SINCE, (experiment_ids, since), _keep_observed),
    ):
        for row in await group.rows(query, *columns):
            keep(found[row["experiment_id"]], row)


def _keep_assignment(found: LookupResult, row: Any) -> None:  # noqa: ANN401 - a row of either engine
    assignment = traffic_rows.assignment_of(row)
    found.assignments[assignment.draw] = assignment


def _keep_by_unit(found: LookupResult, row: Any) -> None:  # noqa: ANN401 - a row of either driver
    _keep_assignment(found, row)
    found.by_unit[row["unit"]] = row["draw"]


def _keep_by_key(found: LookupResult, row: Any) -> None:  # noqa: ANN401 - a row of either driver
    _keep_assignment(found, row)
    found.by_key[row["idempotency_key"]] = row["draw"]


def _keep_observation(found: LookupResult, row: Any) -> None:  # noqa: ANN401 - a row of either driver
    found.observations[row["id"]] = settings_rows.observation_from(row)


def _keep_reply(found: LookupResult, row: Any) -> None:  # noqa: ANN401 - a row of either driver
    found.replies[row["route"], row["key"]] = settings_rows.reply_from(row)


def _keep_due(found: LookupResult, row: Any) -> None:  # noqa: ANN401 - a row of either driver
    _keep_assignment(found, row)
    found.due.append(row["draw"])


def _keep_finding(found: LookupResult, row: Any) -> None:  # noqa: ANN401 - a row of either driver
    found.findings = [*(found.findings or ()), settings_rows.finding_from(row)]


def _keep_audited(found: LookupResult, row: Any) -> None:  # noqa: ANN401 - a row of either driver
    found.audited_since.append(traffic_rows.event_from(row))


def _keep_observed(found: LookupResult, _: Any) -> None:  # noqa: ANN401 - a row of either driver
    found.observed_since = True


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
_FINDINGS = query_by(findings, ["bigint"], "t.experiment_id = w.a")
_AUDITED_SINCE = query_by(events, ["bigint", "bigint"], f"t.experiment_id = w.a AND t.sequence > w.b AND {AUDITED_ONLY}")
_OBSERVED_SINCE = query_by(
    events,
    ["bigint", "bigint"],
    "t.experiment_id = w.a AND t.sequence = (SELECT max(l.sequence) FROM events l "  # noqa: S608 - words of our own
    f"WHERE l.experiment_id = w.a AND l.sequence > w.b AND l.{OBSERVED_ONLY})",
    columns=("experiment_id",),
)
_OBSERVATIONS = query_by(observations, ["bigint", "text"], "t.experiment_id = w.a AND t.id = w.b")
REPLIES = query_by(replies, ["bigint", "text", "text"], "t.experiment_id = w.a AND t.route = w.b AND t.key = w.c")
