"""Bytes of requests as clients, proxies and attackers send them: right, nearly right and wrong, in pieces of any size."""

from __future__ import annotations

import socket
import ssl
import time
from dataclasses import dataclass
from random import Random

_HOST = b"host: 127.0.0.1"
_BODIES = (
    *(b"{}", b"{ }", b"[]", b"null", b"", b"{", b" {} ", b"{}{}", b"\xef\xbb\xbf{}"),
    *(b'{"unit": "u"}', b'{"unit":"\\u00e9"}', b'{"unit": "\xc3\xa9"}', b'{"unit": null}', b'{"unit": ""}', b'{"unit": 7}'),
    *(b'{"unit": "a", "unit": "b"}', b'{"other": 1}', b'{"unit": "\xff"}', b'{"unit": "\\ud800"}', b'{"unit": "a\\u0000"}'),
    *(b'{"unit": NaN}', b'{"unit": "' + b"x" * 256 + b'"}'),
)
_REWARDS = b"1", b"0", b"0.5", b"true", b"1.0", b"1e400", b"NaN", b'"1"', b"2", b"null", b"-0.0", b"1e0"
_EXTRAS = (
    *(b"accept: */*", b"Accept-Encoding: gzip", b"x-request-id: mine", b"connection: keep-alive", b"host: 127.0.0.1"),
    *(b"content-type: application/json", b"content-type: text/plain", b"Content-Type: application/json; charset=utf-8"),
    *(b"host: elsewhere.example", b"idempotency-key: ", b"idempotency-key: \xe9", b"expect: 100-continue", b"x: y\r\n folded"),
    *(b"x : y", b" x: y", b"x", b"x: \x00", b"content-length: 2", b"content-length: +2", b"content-length: 2, 2"),
    *(b"transfer-encoding: chunked", b"transfer-encoding: identity", b"upgrade: websocket", b"upgrade: h2c"),
    *(b"authorization: Bearer ba_wrong", b"range: bytes=0-1", b"if-none-match: *"),
)
_TARGETS = (
    *(b"%b", b"%b", b"%b", b"%b", b"%b", b"%b", b"%b", b"%b"),
    *(b"%b?x=1", b"%b/", b"http://127.0.0.1%b", b"/%b", b"%b#x", b"%b%%00", b"/.%b"),
)
# So short that a campaign of them is no longer for it, and longer than a packet takes to arrive here.
_PAUSE_SECONDS = 0.001
LAST = b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n"


@dataclass(frozen=True, slots=True)
class RawCase:
    """What goes over one connection, in these pieces."""

    pieces: tuple[bytes, ...]
    has_end: bool = False
    """Its last request, which says that the connection is to be closed, is sure to be heard as such."""
    pause_seconds: float = 0.0
    """Between the pieces, so that each arrives by itself."""
    hidden_unit: str | None = None
    """Whom a request asks for that is hidden in another one."""

    @property
    def sent(self) -> bytes:
        """The pieces as one."""
        return b"".join(self.pieces)

    def send_over(self, link: socket.socket) -> bool:
        """Piece by piece, all of them; was it taken?"""
        was_taken = True
        for piece in self.pieces:
            try:
                link.sendall(piece)
            except (ConnectionError, ssl.SSLError):  # it has been refused already: what it was told is still there
                was_taken = False
            if self.pause_seconds:
                time.sleep(self.pause_seconds)
        return was_taken


def raw_case(number: int) -> RawCase:
    """The case with this number, always the same: several requests that are framed well, or one that is framed in any way.

    Not both: what uvicorn does with requests that are not answered yet when something follows that is no HTTP is up to chance.
    """
    dice = Random(number)  # noqa: S311 - it plays
    if dice.random() < 0.5:
        sent = b"".join(_request(dice, well=True) for _ in range(dice.choice((1, 2, 3, 5)))) + LAST
    else:
        sent = _request(dice, well=False)
    return RawCase(tuple(pieces_of(dice, sent)), has_end=sent.endswith(LAST))


def split_cases() -> list[RawCase]:
    """An ask, one in chunks, a tell, and two asks at once, each in two packets, cut at every place, and a byte at a time."""
    base = b"POST /v1/experiments/%b HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    ask = base % b"ledger/assignments" + b'content-length: 15\r\n\r\n{"unit": "cut"}'
    chunked = base % b"sticky/assignments" + b'transfer-encoding: chunked\r\n\r\n6\r\n{"unit\r\n9\r\n": "cut"}\r\n0\r\n\r\n'
    tell = base % b"sticky/units/cut/reward" + b'content-length: 13\r\n\r\n{"reward": 1}'
    return [
        RawCase(pieces, has_end=True, pause_seconds=_PAUSE_SECONDS)
        for sent in (ask + LAST, chunked + LAST, tell + LAST, ask + ask + LAST)
        for pieces in (*_cut_once(sent), tuple(bytes([byte]) for byte in sent))
    ]


def _cut_once(sent: bytes) -> list[tuple[bytes, bytes]]:
    return [(sent[:cut], sent[cut:]) for cut in range(1, len(sent))]


def pieces_of(dice: Random, sent: bytes) -> list[bytes]:
    """In up to five packets."""
    cuts = sorted(dice.randrange(len(sent)) for _ in range(dice.choice((0, 0, 1, 2, 4))))
    return [sent[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(sent)], strict=True) if end > begin]


def _request(dice: Random, *, well: bool) -> bytes:
    method, path, body = _meant(dice)
    path = dice.choice(_TARGETS[:8]) % path
    headers = [_HOST, b"content-type: application/json"]
    if dice.random() < 0.3:
        headers.append(b"idempotency-key: key-%d" % dice.randrange(20))
    framed = body
    if dice.random() < 0.08:
        headers.append(b"transfer-encoding: chunked")
        framed = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (body[:3], body[3:]) if part) + b"0\r\n\r\n"
    elif method != b"GET" or body:
        headers.append(b"content-length: %d" % len(body))
    raw = _joined(b" ".join((method, path, b"HTTP/1.1")), headers, framed)
    return raw if well else _framed_oddly(dice, method, path, headers, framed)


def _joined(first: bytes, headers: list[bytes], body: bytes, line_end: bytes = b"\r\n") -> bytes:
    return line_end.join([first, *headers, b"", body])


def _framed_oddly(dice: Random, method: bytes, path: bytes, headers: list[bytes], body: bytes) -> bytes:
    """With headers that do not belong there, another version, another byte; it is the last one of its connection."""
    path = dice.choice(_TARGETS) % path.replace(b"ledger", dice.choice((b"ledger", b"ledger", b"l%65dger")))
    for _ in range(dice.choice((0, 1, 2))):
        headers.insert(dice.randrange(len(headers) + 1), dice.choice(_EXTRAS))
    if dice.random() < 0.1:
        headers = [header.title() for header in headers]
    version = b"HTTP/1.1" if dice.random() < 0.9 else dice.choice((b"HTTP/1.0", b"HTTP/2.0", b"http/1.1", b"HTTP/1.1 "))
    line_end = b"\r\n" if dice.random() < 0.95 else b"\n"
    raw = _joined(b" ".join((method, path, version)), [*headers, b"connection: close"], body, line_end)
    # Whoever asks for a host in the target means that one, whatever `Host` says: here, not to uvicorn.
    if dice.random() < 0.2 and b"//127.0.0.1" not in path:
        place = dice.randrange(len(raw))
        raw = raw[:place] + bytes([dice.randrange(256)]) + raw[place + 1 :]
    return raw


def _meant(dice: Random) -> tuple[bytes, bytes, bytes]:
    """(method, path, body) of something that a client may want."""
    experiment = dice.choice((b"ledger", b"sticky"))
    base = b"/v1/experiments/" + experiment
    choice = dice.random()
    if choice < 0.5:
        body = dice.choice(_BODIES) if dice.random() < 0.7 else b'{"unit": "unit-%d"}' % dice.randrange(30)
        return b"POST", base + b"/assignments", body
    if choice < 0.75:
        body = b'{"reward": %b}' % dice.choice(_REWARDS)
        return b"POST", b"/v1/experiments/sticky/units/unit-%d/reward" % dice.randrange(30), body
    if choice < 0.85:
        return b"GET", base + dice.choice((b"/recommendation", b"", b"/assignments?page_size=2", b"/nothing")), b""
    if choice < 0.93:
        return b"POST", base + b"/assignments/batch", dice.choice((b'{"count": 3}', b'{"units": ["a", "a"]}', b'{"count": 0}'))
    return dice.choice((b"PUT", b"DELETE", b"OPTIONS", b"PATCH")), base + b"/assignments", b"{}"
