"""The oracle of the recogniser of plain requests: what it takes the general way must take, too, and for the same.

It may pass anything down. What it takes is one whole request; what it says has begun is the beginning of one, which the general
way would wait for as well; and no part of what it takes is taken for a whole.
"""

from __future__ import annotations

from typing import Literal, TypeAlias
from zlib import crc32

from service.application.commands.tell import Tell
from service.domain.api_keys import digest_of
from service.domain.callers import ALL_SCOPES, ANYBODY, Caller
from service.web.fast_path.recogniser import FastRequest, LastHead, Stranger, recognise
from service.web.hosts import AllowedHosts
from testing.fuzzing.general_way import ParsedHead, Understood, understood

Taken: TypeAlias = Literal["request", "stranger", "begun"] | None
SECRET = b"ba_" + b"a" * 12 + b"_" + b"b" * 43
"""A key that is known. Whoever sends none is known, too; another one is a stranger's."""
HOSTS = [b"x", b"127.0.0.1:8000", b"localhost"]
_KNOWN = {None: ANYBODY, digest_of(SECRET): Caller(ALL_SCOPES, "key_1")}


def judge(data: bytes, *earlier: bytes) -> Taken:
    """What the recogniser takes these bytes for, after others on their connection, whose lines it need not read again.

    AssertionError, or whatever the general way raises, if that is wrong.
    """
    last = LastHead()
    for one in earlier:
        _recognised(one, last)
    found = _recognised(data, last)
    if found is None:
        return None
    if found == "begun":
        _judge_beginning(data)
        return "begun"
    general = understood(data, _allowed(), is_known=lambda secret: _caller(secret) is not None)
    assert (found.name, found.route) == (general.name, general.route)
    _judge_part(data, crc32(data) % len(data))
    again = _recognised(data, last)  # on the same connection, where a key need not be hashed again
    assert type(again) is type(found)
    if isinstance(found, Stranger):
        assert (found.secret, general.command) == (general.secret, None)
        return "stranger"
    _judge_request(found, general)
    assert isinstance(again, FastRequest)
    _judge_request(again, general)
    return "request"


def _recognised(data: bytes, last: LastHead) -> FastRequest | Stranger | Literal["begun"] | None:
    return recognise(data, set(HOSTS), _KNOWN.get, last)


def _caller(secret: bytes | None) -> Caller | None:
    return _KNOWN.get(None if secret is None else digest_of(secret))


def _allowed() -> AllowedHosts:
    return AllowedHosts("127.0.0.1", [host.decode() for host in HOSTS])


def _judge_request(found: FastRequest, general: Understood) -> None:
    assert found.caller == _caller(general.secret)
    assert (found.key, found.command) == (general.key, general.command)
    if isinstance(found.command, Tell) and isinstance(general.command, Tell):
        assert repr(found.command.reward) == repr(general.command.reward)  # -0.0 equals 0.0, but not in an answer


def _judge_beginning(data: bytes) -> None:
    """Nothing was refused, answered or finished by now."""
    parsed = ParsedHead(data)
    assert (parsed.begun, parsed.heads, parsed.whole) == (1, 1, 0)
    assert parsed.keeps_alive


def _judge_part(data: bytes, length: int) -> None:
    """A part is never whole, nor is it with something behind it."""
    for other in (data[:length], data + data[:1]):
        found = _recognised(other, LastHead())
        assert found is None or (found == "begun" and len(other) < len(data))
