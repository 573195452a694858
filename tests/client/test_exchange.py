"""What a call does next, told without any network."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from bestarm import DeadlineExceeded, Error, MalformedAnswer, Unavailable, Unreachable
from bestarm.deadline import Deadline
from bestarm.exchange import LONGEST_PAUSE, LONGEST_RETRY_AFTER, Answer, Call, Flow, Try, Wait, pause, retry_after, sent

_CALL = Call("GET", "/")


def _flow(seconds: float = 60) -> Flow[bytes]:
    return sent(_CALL, lambda answer: answer.content, Deadline.after(seconds))


def test_a_call_is_tried_paused_and_tried_again() -> None:
    """The same request each time, until an answer can be read."""
    flow = _flow()
    assert isinstance(first := next(flow), Try)
    assert isinstance(flow.send(Unreachable("reset")), Wait)
    assert flow.send(None) == first
    assert isinstance(flow.send(Answer(503, {}, b"")), Wait)
    flow.send(None)
    with pytest.raises(StopIteration) as done:
        flow.send(Answer(200, {}, b"here"))
    assert done.value.value == b"here"


def test_a_pause_beyond_the_deadline_is_not_begun() -> None:
    """The error is raised at once."""
    flow = _flow(1)
    next(flow)
    with pytest.raises(Unavailable) as refused:
        flow.send(Answer(429, {"retry-after": "2"}, b"{}"))
    assert (refused.value.code, refused.value.retry_after) == ("http_429", 2.0)


def test_a_deadline_within_a_later_try_raises_what_the_one_before_met() -> None:
    """A certificate that nobody trusts is worth more words than that the time is over; a first try has nothing else to say."""
    flow = _flow()
    next(flow)
    refused = Unreachable("no certificate")
    refused.__cause__ = OSError("the handshake")
    flow.send(refused)
    flow.send(None)
    with pytest.raises(Unreachable, match="no certificate") as raised:
        flow.send(DeadlineExceeded("over"))
    assert str(raised.value.__cause__) == "the handshake"
    alone = _flow()
    next(alone)
    with pytest.raises(DeadlineExceeded):
        alone.send(DeadlineExceeded("over"))


def test_pauses_grow_are_random_and_end_somewhere() -> None:
    """Full jitter: anything from nothing to twice the last limit, at most two seconds."""
    for tries in (1, 2, 3, 10, 10_000):
        pauses = [pause(tries, Unreachable("")) for _ in range(200)]
        longest = min(LONGEST_PAUSE, 0.05 * 2 ** min(tries - 1, 16))
        assert 0 <= min(pauses) < longest / 4
        assert longest / 2 < max(pauses) <= longest


def test_retry_after_is_seconds_or_a_date() -> None:
    """And nothing else: what cannot be read is not waited for."""
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    assert 28 < (retry_after({"retry-after": soon}) or 0) <= 30
    assert retry_after({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}) == 0
    assert retry_after({"retry-after": "3"}) == 3
    endless = ("9300000000", "9" * 400, "Fri, 31 Dec 9999 23:59:59 GMT")
    assert [retry_after({"retry-after": written}) for written in endless] == [LONGEST_RETRY_AFTER] * 3
    assert [retry_after({"retry-after": written}) for written in ("nan", "-1", "soon", "")] == [None] * 4
    assert retry_after({}) is None


@pytest.mark.parametrize(
    ("status", "kind", "body", "error"),
    [
        (404, "text/html", "<html>", "malformed_answer"),
        (404, "application/json", '{"code": "NOT_FOUND"}', "malformed_answer"),
        (400, "application/problem+json", '{"code": 7}', "malformed_answer"),
        (413, "application/problem+json", "[]", "malformed_answer"),
        (404, "application/problem+json; charset=utf-8", '{"code": "arm_not_found"}', "arm_not_found"),
        *((status, "text/html", "<html>", f"http_{status}") for status in (401, 403, 408, 425, 429, 502)),
    ],
)
def test_a_refusal_is_the_service_s_if_it_says_so(status: int, kind: str, body: str, error: str) -> None:
    """What stands before it may say who nobody is and when to come back; not what there is and what makes sense."""
    flow = sent(_CALL, lambda answer: answer.content, Deadline.after(0.0001))
    next(flow)
    with pytest.raises(Error) as refused:
        flow.send(Answer(status, {"content-type": kind}, body.encode()))
    assert refused.value.code == error


@pytest.mark.parametrize("answer", [Answer(200, {}, b"x"), Answer(204, {}, b""), Answer(302, {}, b""), Answer(103, {}, b"")])
def test_what_is_not_the_service_s_is_malformed(answer: Answer) -> None:
    """Whatever it is, it is an error that can be caught."""

    def read(got: Answer) -> int:
        return int(got.content)

    flow = sent(_CALL, read, Deadline.after(0.0001))
    next(flow)
    with pytest.raises(MalformedAnswer):
        flow.send(answer)
