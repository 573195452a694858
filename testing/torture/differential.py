"""The same bytes to the service and to the same application under uvicorn as it comes: the same answers, and the same rows."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias

from testing.rows import Rows
from testing.torture.raw_requests import RawCase
from testing.torture.smuggled_requests import HIDDEN, LAST_NAME, PROBE, PROBING
from testing.torture.ways_in import EXPERIMENTS, Heard, Side

_ID = re.compile(r"asg_[0-9a-f]+")
_STATUS_LINE = re.compile(rb"HTTP/1\.1 (\d{3}) [^\r]*\r\n((?:[^\r]*\r\n)*?)\r\n")
_Answer: TypeAlias = tuple[int, dict[str, str], Any]
"""Status, headers that matter, and what it says without what differs from run to run."""
# What differs from one run to the next.
# nginx says by them what it does not speak: other versions of HTTP, other codings.
_REFUSED_BY_PROXIES = {501, 505}
_OF_THE_RUN = {"id", "created_at", "expires_at", "rewarded_at", "as_of", "request_id", "next_page_token"}
_TRACE = b"Traceback"
_HEADERS = ("content-type", "etag", "location", "allow", "idempotency-replayed", "retry-after", "www-authenticate")
_WITHOUT_BODY = {100, 204, 304}
# Names of requests that cases give; others are made up.
_NAMED = "raw-"
_PROBED = [PROBE.decode(), LAST_NAME.decode()]
# What is no HTTP is a problem here, and a line of text there.
_NO_HTTP = {"malformed_request"}
_NO_HTTP_THERE = b"Invalid HTTP request received."
_REFUSED: _Answer = (400, {}, None)
# All that is stored, but for what differs from one run to the next.
_ROWS = {
    "assignments": "draw, sequence, arm, unit, reason, epoch, expiry_reward, status, reward, closed, idempotency_key",
    "events": "sequence, kind, arm, draw, epoch, reason, expiry_reward, status_before, reward_before, closed_before,"
    " status_after, reward_after, closed_after, details",
    "observations": "id, arm, reward, sequence, status, epoch",
    "replies": "route, key, body_hash, status",
}


@dataclass(slots=True)
class Compared:
    """How the answers of the two services compare."""

    cases: int = 0
    answers: int = 0
    statuses: dict[int, int] = field(default_factory=dict)
    differences: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    """Answers of 5xx other than 503, and those with a trace in them."""
    cut: int = 0
    """Connections that were reset under what was still being sent, so that the end of an answer may be lost."""
    smuggled: list[str] = field(default_factory=list)
    """Hidden requests that took effect, or whose answer somebody else got, behind a proxy that had not seen them."""
    heard: set[str] = field(default_factory=set)
    """Units of hidden requests that were seen, done and answered as requests of their own."""

    def row(self) -> dict[str, Any]:
        """For the table."""
        return {**asdict(self), "heard": len(self.heard)}


def compare(sides: Sequence[Side], cases: Iterable[RawCase]) -> Compared:
    """Case by case, and the rows at the end."""
    found, before = Compared(), [_hidden_units(side) for side in sides]
    with ThreadPoolExecutor(len(sides)) as threads:
        for number, case in enumerate(cases):
            one, other = threads.map(lambda side: side.exchange(case), sides)  # noqa: B023 - awaited here
            _compare_heard(found, number, case, one, other)
            if case.hidden_unit is not None:
                probes = [*threads.map(lambda side: side.exchange(PROBING), sides)]
                judge_hidden(found, case, (one, other), probes)
    for key in EXPERIMENTS:
        one_s, other_s = (_all_rows(side.server.database_url, key) for side in sides)
        found.differences += [f"{key} has other {table}" for table in one_s if one_s[table] != other_s[table]]
    drawn = [_hidden_units(side) - earlier for side, earlier in zip(sides, before, strict=True)]
    found.smuggled += [unit for units in drawn for unit in units if unit not in found.heard]
    return found


def _compare_heard(found: Compared, number: int, case: RawCase, ours: Heard, stock: Heard) -> None:
    one, other = _answers(ours.answers), _answers(stock.answers)
    found.cases += 1
    found.answers += len(one)
    found.cut += ours.was_cut or stock.was_cut
    for status, _, body in one:
        found.statuses[status] = found.statuses.get(status, 0) + 1
        is_proxy_s = status in _REFUSED_BY_PROXIES and isinstance(body, str)
        if (status >= 500 and status != 503 and not is_proxy_s) or _TRACE in str(body).encode():
            found.failures.append(f"case {number}: {status} {body}"[:300])
    # Of the last answer a part may be lost then.
    is_beginning = (ours.was_cut and one[:-1] == other[: len(one[:-1])]) or (
        stock.was_cut and other[:-1] == one[: len(other[:-1])]
    )
    if not is_beginning and not _alike(one, other, is_last=b" HTTP/1.0\r\n" in case.sent):
        found.differences.append(f"case {number}: {case.sent!r}: {one} or {other}"[:2_000])


def judge_hidden(found: Compared, case: RawCase, both_heard: Sequence[Heard], probes: Sequence[Heard]) -> None:
    """A hidden request that was heard has an answer of its own, and nobody after it gets that of another.

    A proxy that saw one request less than the service would hand the answer to the hidden one to whom came next.
    """
    for heard, probe in zip(both_heard, probes, strict=True):
        names, probed = _names(heard), _names(probe)
        if HIDDEN.decode() in names[:-1] and case.hidden_unit is not None:
            found.heard.add(case.hidden_unit)
        if HIDDEN.decode() in names[-1:] or probed != _PROBED:
            found.smuggled.append(f"{case.sent!r}: {heard.answers!r}, then {probe.answers!r}"[:2_000])


def _names(heard: Heard) -> list[str | None]:
    """Those of the requests that were answered, as far as the cases give them."""
    return [headers.get("x-request-id") for _, headers, _ in _answers(heard.answers)]


def _hidden_units(side: Side) -> Counter[str]:
    """How often each has an assignment."""
    with Rows(side.server.database_url) as stored:
        return Counter(unit for (unit,) in stored.query("SELECT unit FROM assignments WHERE unit LIKE 'hidden-%'"))


def _all_rows(database_url: str, key: str) -> dict[str, Any]:
    """Everything that is stored of an experiment, by table."""
    found: dict[str, Any] = {}
    with Rows(database_url) as stored:
        ((number,),) = stored.query("SELECT id FROM experiments WHERE key = :key", key=key)
        for table, columns in _ROWS.items():
            query = f"SELECT {columns} FROM {table} WHERE experiment_id = :number ORDER BY 1, 2"
            found[table] = stored.query(query, number=number)
        found["events"] = found["events"][1:]  # it was made at another time
        found["arms"] = stored.arms_of(key)
    return found


def _alike(ours: Sequence[_Answer], stock: Sequence[_Answer], *, is_last: bool) -> bool:
    """Where bytes are no HTTP, uvicorn drops the answers to what came before them; here they are given first."""
    if ours == stock:
        return True
    has_dropped = list(stock[-1:]) == [_REFUSED] and len(ours) >= len(stock) and ours[: len(stock) - 1] == stock[:-1]
    # An answer to HTTP/1.0 ends the connection: what follows is not even looked at.
    return has_dropped and (ours[-1] == _REFUSED or is_last)


def _answers(got: bytes) -> list[_Answer]:
    """Each answer; one whose body has no length is the last."""
    found: list[_Answer] = []
    while head := _STATUS_LINE.match(got):
        status, fields = int(head[1]), _fields(head[2])
        length = fields.get("content-length")
        rest = got[head.end() :]
        if length is None and status not in _WITHOUT_BODY:
            return [*found, (status, {}, f"a body without a length: {rest!r}")]
        body, got = rest[: int(length or 0)], rest[int(length or 0) :]
        found.append(_comparable(status, fields, body))
    return found


def _fields(head: bytes) -> dict[str, str]:
    lines = (line.partition(":") for line in head.decode("latin-1").splitlines())
    return {name.lower(): value.strip() for name, _, value in lines}


def _comparable(status: int, fields: dict[str, str], body: bytes) -> _Answer:
    if status == 400 and body == _NO_HTTP_THERE:
        return _REFUSED
    try:
        said = _without(json.loads(body))
    except ValueError:
        said = body.decode("latin-1")
    if status == 400 and isinstance(said, dict) and said.get("code") in _NO_HTTP:
        return _REFUSED
    kept = {name: fields[name] for name in _HEADERS if name in fields}
    if fields.get("x-request-id", "").startswith(_NAMED):
        kept["x-request-id"] = fields["x-request-id"]
    return status, kept | ({"etag": "…"} if "etag" in kept else {}), said  # it is made of times, too


def _without(value: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, dict):
        return {name: _without(one) for name, one in value.items() if name not in _OF_THE_RUN}
    if isinstance(value, list):
        return [_without(one) for one in value]
    return _ID.sub("asg_…", value) if isinstance(value, str) else value
