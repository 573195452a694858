"""What the short way takes for a plain request, and what it leaves to uvicorn."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.application.commands.ask import Ask
from service.application.commands.tell import Tell
from service.domain.api_keys import digest_of
from service.domain.callers import ALL_SCOPES, ANYBODY, Caller
from service.web.fast_path import recogniser
from service.web.fast_path.recogniser import FastRequest, Stranger
from testing.fuzzing.recogniser_oracle import judge

_HOSTS = {b"x", b"127.0.0.1:8000"}
_ID = "asg_" + "0" * 26 + "1"


def _known(_digest: bytes | None) -> Caller:
    return ANYBODY


def request(
    body: str = '{"unit": "u"}', *headers: str, path: str = "/v1/experiments/demo/assignments", length: int | None = None
) -> bytes:
    """A request's bytes."""
    given = ["Host: x", "Content-Type: application/json", f"Content-Length: {len(body) if length is None else length}", *headers]
    return "\r\n".join([f"POST {path} HTTP/1.1", *given, "", body]).encode()


def read(data: bytes) -> FastRequest:
    """It is one."""
    found = recogniser.recognise(data, _HOSTS, _known, recogniser.LastHead())
    assert isinstance(found, FastRequest)
    return found


def test_an_ask() -> None:
    """With all that it may carry, in any case."""
    found = read(request('{"unit": "u"}', "IDEMPOTENCY-KEY: a b", "x-request-id:mine", "Connection: keep-alive"))
    assert (found.key, found.command, found.name) == ("demo", Ask("u", "a b"), b"mine")
    assert read(b"POST /v1/experiments/demo/assignments HTTP/1.1\r\nHost: x\r\n\r\n").command == Ask(None)
    assert read(request("{}", "Accept:", "User-Agent: someone (or other) 1.0")).command == Ask(None)


def test_a_tell() -> None:
    """By its assignment's id."""
    found = read(request('{"reward": 0.5}', path=f"/v1/experiments/demo/assignments/{_ID}/reward"))
    assert (found.key, found.command) == ("demo", Tell(_ID, "reward", 0.5))


def test_a_body_that_is_still_on_its_way() -> None:
    """All of it, or its end."""
    whole = request()
    head = whole.index(b"\r\n\r\n") + 4
    assert [recogniser.recognise(whole[:size], _HOSTS, _known, recogniser.LastHead()) for size in range(head, len(whole))] == [
        "begun"
    ] * (len(whole) - head)
    assert {recogniser.recognise(whole[:size], _HOSTS, _known, recogniser.LastHead()) for size in range(head)} == {None}


@pytest.mark.parametrize(
    "data",
    [
        request() + b"P",
        request() * 2,
        request(length=99_999),
        request(length=-1),
        request().replace(b"Content-Length: 13", b"Content-Length: +13"),
        request().replace(b"Content-Length: 13", b"Content-Length: 1_3"),
        request().replace(b"Content-Length: 13", b"Content-Length : 13"),
        request("{}", "Content-Length: 2"),
        request("{}", "content-length: 0"),
        request("{}", "Transfer-Encoding: chunked"),
        request("{}", "Expect: 100-continue"),
        request("{}", "Upgrade: websocket"),
        request("{}", "Connection: close"),
        request("{}", "Connection: upgrade"),
        request("{}", "Proxy-Connection: close"),
        request("{}", "Content-Encoding: gzip"),
        request("{}", "Origin: http://x"),
        request("{}", "Idempotency-Key: one", "Idempotency-Key: two"),
        request("{}", "Idempotency-Key:"),
        request("{}", f"Idempotency-Key: {'k' * 256}"),
        request("{}", "Idempotency-Key: ümlaut"),
        request("{}").replace(b"Host: x\r\n", b""),
        request("{}").replace(b"Host: x", b"Host: y"),
        request("{}", "Host: x"),
        request("{}", f"Odd: {'x' * 9_000}"),
        request("{}", " folded"),
        request("{}", "no colon"),
        request("{}", ": no name"),
        request("{}", "Odd\tname: x"),
        request("{}", "Odd: a\tb"),
        request("{}", "Odd: a\rb"),
        request("{}", "Odd: a\nTransfer-Encoding: chunked"),
        request("{}", "Odd: a\0b"),
        request("{}").replace(b"\r\n", b"\n"),
        request("{}").replace(b"application/json", b"text/plain"),
        request("{}").replace(b"HTTP/1.1", b"HTTP/1.0"),
        request("{}").replace(b"POST", b"PUT"),
        request("{}").replace(b"POST", b" POST"),
        request("{}", path="/v1/experiments/demo/assignments?x=1"),
        request("{}", path="/v1/experiments/Demo/assignments"),
        request("{}", path="/v1/experiments/demo/assignments/batch"),
        request("{}", path="/v1/experiments/d%65mo/assignments"),
        request('{"unit": 7}'),
        request('{"unit": ""}'),
        request('{"unit": "\\u0000"}'),
        request('{"unit": "\\ud800"}'),
        request('{"unit": "u", "more": 1}'),
        request('{"unit": "u"'),
        request('{"reward": NaN}', path=f"/v1/experiments/demo/assignments/{_ID}/reward"),
        request('{"reward": 1e999}', path=f"/v1/experiments/demo/assignments/{_ID}/reward"),
        request("", path=f"/v1/experiments/demo/assignments/{_ID}/reward"),
    ],
)
def test_anything_else_is_left_to_uvicorn(data: bytes) -> None:
    """Be it right or wrong: it has a parser for all of HTTP, and FastAPI the words."""
    assert recogniser.recognise(data, _HOSTS, _known, recogniser.LastHead()) is None


_VALID = request('{"unit": "u"}', "Idempotency-Key: k-1", "X-Request-Id: mine", "Accept: */*")
_SECRET = f"ba_{'a' * 12}_{'b' * 43}"
_VALIDS = [
    _VALID,
    request('{"reward": 0.25}', f"Authorization: Bearer {_SECRET}", path=f"/v1/experiments/demo/assignments/{_ID}/reward"),
    request('{"unit": "u"}', f"Authorization: Bearer {_SECRET}"),
]
_PIECES = [*(bytes([byte]) for byte in b"\r\n: \t\x0001\xff"), b"\r\n", b"\r\n\r\n", b"Content-Length: 1\r\n", b"Connection: x"]


@settings(max_examples=1_500, deadline=None)
@given(
    valid=st.sampled_from(_VALIDS),
    changes=st.lists(
        st.tuples(st.integers(0, max(map(len, _VALIDS))), st.integers(0, 3), st.sampled_from(_PIECES) | st.binary(max_size=3)),
        max_size=3,
    ),
)
def test_what_it_takes_uvicorn_would_read_alike(valid: bytes, changes: list[tuple[int, int, bytes]]) -> None:
    """A valid ask or tell with bytes replaced, put in or left out: it is left to the parser, or both see the same.

    So it is after the valid one on the same connection, with which it shares most of its lines. `make fuzz` looks for such
    changes by what they reach.
    """
    data = valid
    for place, length, piece in changes:
        data = data[:place] + piece + data[place + length :]
    assert judge(data) == judge(data, valid)


def test_a_key_that_comes_again_is_asked_about_again() -> None:
    """It is not hashed anew on its connection; but whether it is good, and which one it is, is looked at every time."""
    first, other = (f"ba_{letter * 12}_{letter * 43}" for letter in "ab")
    good = {digest_of(secret.encode()): Caller(ALL_SCOPES, secret) for secret in (first, other)}
    last = recogniser.LastHead()

    def caller_of(secret: str) -> str | bytes | None:
        found = recogniser.recognise(request("{}", f"Authorization: Bearer {secret}"), _HOSTS, _good, last)
        assert isinstance(found, FastRequest | Stranger)
        return found.caller.id if isinstance(found, FastRequest) else found.secret

    def _good(digest: bytes | None) -> Caller | None:
        return good.get(digest or b"")

    assert [caller_of(secret) for secret in (first, first, other, first)] == [first, first, other, first]
    del good[digest_of(first.encode())]
    assert [caller_of(first), caller_of(first), caller_of(other)] == [first.encode(), first.encode(), other]


def test_lines_that_come_again_are_not_read_again() -> None:
    """What differs is read: the path, the body, an idempotency key. Whether the host is accepted is looked at every time."""
    last, hosts = recogniser.LastHead(), {b"x"}

    def command_of(data: bytes) -> Ask | Tell | None:
        found = recogniser.recognise(data, hosts, _known, last)
        assert found is None or isinstance(found, FastRequest)
        return None if found is None else found.command

    ask, tell = request('{"unit":"ab"}'), request('{"reward": 1}', path=f"/v1/experiments/demo/assignments/{_ID}/reward")
    assert [command_of(data) for data in (ask, tell, request('{"unit":"cd"}'))] == [Ask("ab"), Tell(_ID, "reward", 1), Ask("cd")]
    remembered = last.lines
    assert b"Content-Length: 13" in remembered
    assert [command_of(request("{}", f"Idempotency-Key: {key}")) for key in "ab"] == [Ask(None, "a"), Ask(None, "b")]
    assert command_of(request("{}", "Origin: http://x")) is None
    assert last.lines is remembered
    hosts.clear()
    assert command_of(ask) is None
