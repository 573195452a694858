"""Requests with another one hidden in them, for whom a proxy and a service would have to disagree about where the first one ends.

Each is a connection: an outer request whose head or framing is odd in one way, or in two, then what may be read as its body or as
a request of its own, then one that ends the connection. They have names, so that the answers tell which of them was heard.
"""

from __future__ import annotations

from itertools import product
from random import Random

from testing.torture.raw_requests import RawCase, pieces_of

OUTER, HIDDEN, LAST_NAME, PROBE = b"raw-outer", b"raw-hidden", b"raw-last", b"raw-probe"
HIDDEN_UNIT = "hidden-"
_LAST = b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\nx-request-id: " + LAST_NAME + b"\r\nconnection: close\r\n\r\n"
PROBING = RawCase(
    (
        b"GET /v1/experiments/sticky/assignments/nothing HTTP/1.1\r\nhost: 127.0.0.1\r\nx-request-id: " + PROBE + b"\r\n\r\n",
        _LAST,
    ),
    has_end=True,
)
"""On a connection of its own: whose answers does it get?"""
_ELSEWHERE = b"elsewhere.example"
_ASK = b"/v1/experiments/ledger/assignments"
# %d is a length that a header may tell: of nothing, or of all that is hidden.
_ODD_HEADERS = (
    # Whoever takes the other length, or none, sees another end.
    *(b"content-length: 0\r\ncontent-length: %d", b"content-length: %d\r\ncontent-length: 0", b"content-length: 0, %d"),
    *(b"content-length: %d, %d", b"content-length: +%d", b"content-length: -%d", b"content-length: 0%d", b"content-length: %d.0"),
    *(b"content-length: 0x%d", b"content-length: %d;", b"content-length: %d\x00", b"content-length:", b"content-length: %d_0"),
    *(
        b"content-length : %d",
        b"content-length\t: %d",
        b"content-length:\r\n %d",
        b"x: y\r\n content-length: %d",
        b" content-length: %d",
    ),
    *(
        b"content-length: %d\n",
        b"x: y\ncontent-length: %d",
        b"x: y\rcontent-length: %d",
        b"content_length: %d",
        b"content-length: \x0b%d",
    ),
    *(
        b"connection: content-length\r\ncontent-length: %d",
        b"Content-Length: %d\r\nCONTENT-LENGTH: %d",
        b"content-length: 99999999999999999999",
    ),
    # Chunked, or not quite.
    *(b"transfer-encoding: chunked\r\ncontent-length: %d", b"content-length: %d\r\ntransfer-encoding: chunked"),
    *(
        b"transfer-encoding: chunked",
        b"TRANSFER-ENCODING: CHUNKED",
        b"transfer-encoding: xchunked",
        b"transfer-encoding: chunked, identity",
    ),
    *(b"transfer-encoding: identity, chunked", b"transfer-encoding: gzip, chunked", b'transfer-encoding: "chunked"'),
    *(b"transfer-encoding: chunked\r\ntransfer-encoding: identity", b"transfer-encoding: chunked\r\ntransfer-encoding: chunked"),
    *(
        b"transfer-encoding : chunked",
        b"transfer-encoding\t: chunked",
        b"transfer-encoding:\tchunked",
        b"transfer-encoding:\x0bchunked",
    ),
    *(b"transfer-encoding:\r\n chunked", b" transfer-encoding: chunked", b"x: y\r\n transfer-encoding: chunked"),
    *(
        b"x: y\ntransfer-encoding: chunked",
        b"x: y\rtransfer-encoding: chunked",
        b"transfer-encoding: chunked\n",
        b"transfer_encoding: chunked",
    ),
    *(
        b"transfer-encoding: chunked\x00",
        b"transfer-encoding\x00: chunked",
        b"transfer-encoding: chunk\xc3\xa9d",
        b"transfer-encoding: ",
    ),
    *(
        b"connection: transfer-encoding\r\ntransfer-encoding: chunked",
        b"te: trailers\r\ntrailer: x\r\ntransfer-encoding: chunked",
    ),
    # Whoever waits, or speaks something else from here on.
    *(
        b"expect: 100-continue\r\ncontent-length: %d",
        b"expect: 100-continue\r\ntransfer-encoding: chunked",
        b"expect: 200-ok\r\ncontent-length: %d",
    ),
    *(
        b"connection: upgrade\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAARAAAAAAAIAAAAA",
        b"connection: upgrade\r\nupgrade: websocket",
    ),
    b"connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==",
    *(
        b"connection: upgrade\r\nupgrade: h2c\r\ncontent-length: %d",
        b"connection: close\r\ncontent-length: %d",
        b"connection: keep-alive, close",
    ),
    # Another host, another line.
    *(
        b"host: elsewhere.example",
        b"host: 127.0.0.1",
        b"x-forwarded-host: elsewhere.example",
        b"x",
        b": x",
        b"x: \x00",
        b"x y: z",
    ),
)
_LINES = (
    *(b"POST %b HTTP/1.1", b"POST %b HTTP/1.1", b"POST %b HTTP/1.1", b"GET %b HTTP/1.1", b"POST http://127.0.0.1%b HTTP/1.1"),
    *(
        b"POST http://elsewhere.example%b HTTP/1.1",
        b"POST /%b HTTP/1.1",
        b"POST /.%b HTTP/1.1",
        b"POST %b/../assignments HTTP/1.1",
    ),
    *(
        b"POST %b HTTP/1.0",
        b"POST %b  HTTP/1.1",
        b"POST\t%b HTTP/1.1",
        b"POST %b x HTTP/1.1",
        b"POST %b%%0d%%0ax:y HTTP/1.1",
        b"\r\nPOST %b HTTP/1.1",
    ),
    *(b"DELETE %b HTTP/1.1", b"OPTIONS %b HTTP/1.1", b"POST %b HTTP/1.1\r\n", b"POST %b HTTP/1.1\nx: y"),
)
# What comes behind the head: the hidden request bare, as the only chunk, behind the last one; and chunks that are odd.
_BEHIND = (
    *(b"%b", b"0\r\n\r\n%b", b"%x\r\n%b\r\n0\r\n\r\n", b"2\r\n{}\r\n0\r\n\r\n%b", b"0\r\n%b", b"0\r\nx: y\r\n\r\n%b", b"0\n\n%b"),
    *(
        b"2;x\r\n{}\r\n0;y\r\n\r\n%b",
        b'2;x="\r\n"\r\n{}\r\n0\r\n\r\n%b',
        b"2;x\n{}\r\n0\r\n\r\n%b",
        b"2\n{}\n0\n\n%b",
        b"2\r\n{}0\r\n\r\n%b",
    ),
    *(
        b"0x2\r\n{}\r\n0\r\n\r\n%b",
        b"+2\r\n{}\r\n0\r\n\r\n%b",
        b" 2\r\n{}\r\n0\r\n\r\n%b",
        b"2 \r\n{}\r\n0\r\n\r\n%b",
        b"002\r\n{}\r\n000\r\n\r\n%b",
    ),
    *(
        b"2\r\n{}XX\r\n0\r\n\r\n%b",
        b"10000000000000002\r\n{}\r\n0\r\n\r\n%b",
        b"0\r\ncontent-length: 9\r\n\r\n%b",
        b"0\r\ntransfer-encoding: chunked\r\n\r\n%b",
    ),
)
_PLAIN_LINES = 4
# Each odd header with each framing, and each odd line with a few.
_SYSTEMATIC = [
    *product(_LINES[:1], _ODD_HEADERS, _BEHIND),
    *product(_LINES[_PLAIN_LINES:], (b"content-length: %d", b"content-length: 0", b"transfer-encoding: chunked"), _BEHIND[:7]),
]
SYSTEMATIC = len(_SYSTEMATIC)
"""So many have each oddity with each framing; those behind them have two at once."""


def smuggled_case(number: int) -> RawCase:
    """The case with this number, always the same; its hidden request asks for a unit of its own."""
    hidden = _hidden(number)
    return RawCase(_pieces(number, hidden, _LAST), hidden_unit=f"{HIDDEN_UNIT}{number}")


def bare_case(number: int) -> RawCase:
    """The same oddity with nothing hidden in it and nothing behind it.

    Whoever asks for another host in the target means that one, whatever `Host` says: here, not to uvicorn.
    """
    return RawCase(_pieces(number, b"", b"", elsewhere=b"127.0.0.1", named=(b"connection: close",)))


def _pieces(
    number: int, hidden: bytes, last: bytes, *, elsewhere: bytes = _ELSEWHERE, named: tuple[bytes, ...] = ()
) -> tuple[bytes, ...]:
    dice = Random(number)  # noqa: S311 - it plays
    if number < SYSTEMATIC:
        line, odd, behind = _SYSTEMATIC[number]
        headers = [odd]
    else:
        line, behind = dice.choice(_LINES), dice.choice(_BEHIND)
        headers = dice.sample(_ODD_HEADERS, 2)
    body = behind % ((len(hidden), hidden) if b"%x" in behind else hidden)
    told = 0 if dice.random() < 0.3 else len(body) if dice.random() < 0.5 else len(hidden)
    names = [b"host: 127.0.0.1", b"content-type: application/json", b"x-request-id: " + OUTER]
    given = [header.replace(b"%d", b"%d" % told) for header in headers]
    head = b"\r\n".join([(line % _ASK).replace(_ELSEWHERE, elsewhere), *names, *given, *named, b"", b""])
    return tuple(pieces_of(dice, head + body + last))


def _hidden(number: int) -> bytes:
    body = b'{"unit": "%b%d"}' % (HIDDEN_UNIT.encode(), number)
    names = b"host: 127.0.0.1\r\ncontent-type: application/json\r\nx-request-id: " + HIDDEN
    return b"POST %b HTTP/1.1\r\n%b\r\ncontent-length: %d\r\n\r\n%b" % (_ASK, names, len(body), body)
