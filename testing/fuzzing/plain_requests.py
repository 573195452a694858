"""Asks and tells in the form that the recogniser takes, to begin with, and changes of one part of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

from testing.fuzzing.recogniser_oracle import SECRET

_ASK = b"/v1/experiments/demo/assignments"
_TELL = b"/v1/experiments/demo/assignments/asg_" + b"0" * 26 + b"1/reward"
_LENGTH = re.compile(rb"(?i)(\r\ncontent-length: ?)[0-9]{1,4}(?=\r\n)")


def plain(body: bytes, *headers: bytes, target: bytes = _ASK) -> bytes:
    """A plain request with this body, and these headers beside those that it needs."""
    given = (b"Host: x", b"Content-Type: application/json", b"Content-Length: %d" % len(body), *headers)
    return b"\r\n".join((b"POST %b HTTP/1.1" % target, *given, b"", body))


PLAIN = [
    b"POST /v1/experiments/demo/assignments HTTP/1.1\r\nHost: x\r\n\r\n",
    plain(b'{"unit": "u"}'),
    plain(b"{}", b"Accept:", b"User-Agent: someone (or other) 1.0"),
    plain(b' {"unit" : null}\n', b"Connection: keep-alive"),
    plain(b'{"unit": "\\u00e9\\ud83d\\ude00\\/"}', b"Idempotency-Key: a b", b"X-Request-Id:mine"),
    plain('{"unit": "é😀"}'.encode(), b"Authorization: Bearer " + SECRET),
    plain(b'{"unit": "u", "unit": "v"}', b"Authorization: Bearer " + SECRET[:-1] + b"c"),
    plain(b'{"unit": "' + b"u" * 255 + b'"}', b"X-API-Key: " + SECRET),
    plain(b'{"reward": 1}', target=_TELL),
    plain(b'{"reward": -0.25e1}', b"authorization: bearer  " + SECRET, target=_TELL),
    plain(b'{"reward": 1e-400, "reward": -0}', b"Forwarded: host=y", target=_TELL),
]


def with_one_part_changed(data: bytes, dice: Random, change: Callable[[bytes], bytes]) -> bytes:
    """One line of the head, or the body, changed; its length is said as it is by then."""
    head, _, body = data.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    place = dice.randrange(2 * len(lines))
    if place < len(lines):
        lines[place] = change(lines[place])
    else:
        body = change(body)
    head = _LENGTH.sub(rb"\g<1>%d" % len(body), b"\r\n".join(lines) + b"\r\n")
    return head + b"\r\n" + body
