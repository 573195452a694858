"""What the fuzzer of the recogniser goes by, and the inputs that it has found so far."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from service.application.commands.ask import Ask
from service.web.hosts import AllowedHosts
from service.web.problems import BadRequest
from testing.fuzzing import plain_requests
from testing.fuzzing.general_way import Refused, understood
from testing.fuzzing.plain_requests import PLAIN, plain
from testing.fuzzing.recogniser_oracle import HOSTS, SECRET, judge

_CORPUS = sorted((Path(plain_requests.__file__).parent / "corpus").iterdir())


def _understood(data: bytes) -> Ask:
    found = understood(data, AllowedHosts("127.0.0.1", [host.decode() for host in HOSTS]), is_known=lambda _: True).command
    assert isinstance(found, Ask)
    return found


@pytest.mark.parametrize("data", PLAIN)
def test_plain_requests_are_taken(data: bytes) -> None:
    """So that what is changed in them begins at what the recogniser takes."""
    assert judge(data) in {"request", "stranger"}
    assert judge(data[:-1]) in {"begun", None}


def test_the_corpus_is_judged_alike() -> None:
    """Every kind of outcome is in it, and none is wrong."""
    assert {judge(path.read_bytes()) for path in _CORPUS} == {"request", "stranger", "begun", None}


@pytest.mark.parametrize(
    "data",
    [
        plain(b"{}") * 2,
        plain(b"{}")[:-1],
        plain(b"{}", b"Transfer-Encoding: chunked"),
        plain(b"{}", b"Connection: close"),
        plain(b"{}", b"Host: x"),
        plain(b"{}", b"Sec-Fetch-Site: cross-site"),
        plain(b"{}", b"Authorization: Bearer bapub_" + SECRET[3:]),
        plain(b"{}", target=b"/v1/experiments/Demo/assignments"),
        plain(b"{}", target=b"/v1/experiments/demo/assignments?x=1"),
        plain(b"{}", target=b"/v1/experiments/demo/rewards"),
        plain(b'{"unit": 7}'),
    ],
)
def test_what_the_general_way_would_not_do_the_recogniser_must_not(data: bytes) -> None:
    """The oracle refuses it, so that to take it would be found."""
    with pytest.raises(Refused):
        _understood(data)


@pytest.mark.parametrize("body", [b'{"unit": "\xff"}', b'{"unit": "\\ud800"}', b'{"unit": "a\\u0000"}', b'{"unit": NaN}', b"{"])
def test_what_no_body_may_hold_is_found(body: bytes) -> None:
    """By the same checks that the routes make."""
    with pytest.raises(BadRequest):
        _understood(plain(body))


def test_the_general_way_reads_what_was_sent() -> None:
    """The unit, and the key for repeats, as a route hands them on."""
    assert _understood(plain('{"unit": "é"}'.encode(), b"Idempotency-Key: a b")) == Ask("é", "a b")
    assert _understood(PLAIN[0]) == Ask(None, None)


def test_one_part_is_changed_and_the_length_follows() -> None:
    """Or every change of a body would end at its length."""
    dice = Random(1)  # noqa: S311 - it plays
    grown = [plain_requests.with_one_part_changed(PLAIN[1], dice, lambda part: part + b" ") for _ in range(20)]
    assert len({*grown}) > 3
    assert any(data.endswith(b"} ") and b"Content-Length: 14\r\n" in data for data in grown)
