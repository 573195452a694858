"""Whom a request says it is for, and where it says it comes from: forged, missing, doubled, odd; on everything that is served."""

from __future__ import annotations

import socket
from dataclasses import dataclass

import pytest

from testing.json_client import JsonClient
from testing.server import Server

_PORT = "PORT"
_OWN = "http://localhost:PORT"


@dataclass(frozen=True)
class _Case:
    """How a request names host and origin, and what becomes of it."""

    headers: tuple[str, ...]
    read: int
    change: int
    target: str = ""
    """What stands before its path."""


def _refused(status: int, *headers: str, target: str = "") -> _Case:
    return _Case(headers, status, status, target)


def _served(*headers: str, target: str = "") -> _Case:
    return _Case(headers, 200, 201, target)


def _foreign(*headers: str) -> _Case:
    """Pages of other origins may send it, and change nothing; what they read they are not shown by their browser."""
    return _Case(("Host: localhost:PORT", *headers), 200, 403)


def _cross_site(*headers: str) -> _Case:
    """Nor are pages of other sites shown a picture, or told by the time it takes."""
    return _refused(403, "Host: localhost:PORT", "Sec-Fetch-Site: cross-site", *headers)


_CASES = {
    "a name of loopback": _served("Host: localhost:PORT"),
    "in capitals": _served("Host: LOCALHOST:PORT"),
    "without a port": _served("Host: localhost"),
    "with an empty port": _served("Host: localhost:"),
    "with another port": _served("Host: 127.0.0.1:1"),
    "with a trailing dot": _served("Host: localhost.:PORT"),
    "another address of loopback": _served("Host: 127.9.8.7"),
    "IPv6": _served("Host: [::1]:PORT"),
    "IPv6, written out": _served("Host: [0:0:0:0:0:0:0:1]"),
    "forged": _refused(421, "Host: evil.example"),
    "forged, with the port": _refused(421, "Host: evil.example:PORT"),
    "forged, with an origin of the same name": _refused(421, "Host: evil.example:PORT", "Origin: http://evil.example:PORT"),
    "forged, said to be its own": _refused(421, "Host: evil.example", "Sec-Fetch-Site: same-origin"),
    "below another name": _refused(421, "Host: localhost.evil.example"),
    "an address below another name": _refused(421, "Host: 127.0.0.1.evil.example"),
    "two trailing dots": _refused(421, "Host: localhost.."),
    "a private address": _refused(421, "Host: 10.0.0.1"),
    "any address": _refused(421, "Host: 0.0.0.0:PORT"),
    "an address as a number": _refused(421, "Host: 2130706433"),
    "another IPv6": _refused(421, "Host: [::2]:PORT"),
    "missing": _refused(400),
    "empty": _refused(400, "Host:"),
    "doubled": _refused(400, "Host: localhost", "Host: localhost"),
    "doubled, one forged": _refused(400, "Host: localhost", "Host: evil.example"),
    "doubled, the other one forged": _refused(400, "host: evil.example", "HOST: localhost"),
    "two in one": _refused(400, "Host: localhost, evil.example"),
    "with a user": _refused(400, "Host: user@localhost"),
    "with a scheme": _refused(400, "Host: http://localhost"),
    "with a path": _refused(400, "Host: localhost/x"),
    "with a space": _refused(400, "Host: local host"),
    "with a long port": _refused(400, "Host: localhost:999999"),
    "half an IPv6": _refused(400, "Host: [::1"),
    "a whole URL": _served("Host: localhost", target="http://localhost:PORT"),
    "a whole URL, which counts": _served("Host: evil.example", target="http://localhost:PORT"),
    "a whole URL with a user": _served("Host: localhost", target="http://evil.example@localhost"),
    "a forged URL": _refused(421, "Host: localhost", target="http://evil.example"),
    "a forged URL with a user": _refused(421, "Host: localhost", target="http://localhost@evil.example"),
    "a URL without Host": _refused(400, target="http://localhost"),
    "its own origin": _served("Host: localhost:PORT", f"Origin: {_OWN}"),
    "its own origin behind TLS": _served("Host: localhost:PORT", "Origin: https://localhost:PORT"),
    "its own page": _served("Host: localhost:PORT", "Sec-Fetch-Site: same-origin", f"Origin: {_OWN}"),
    "typed by hand": _served("Host: localhost:PORT", "Sec-Fetch-Site: none"),
    "another origin": _foreign("Origin: https://evil.example"),
    "no origin in particular": _foreign("Origin: null"),
    "an empty origin": _foreign("Origin:"),
    "an origin of another port": _foreign("Origin: http://localhost:1"),
    "an origin of another name of loopback": _foreign("Origin: http://127.0.0.1:PORT"),
    "an origin with a trailing dot": _foreign("Origin: http://localhost.:PORT"),
    "an origin with a user": _foreign(f"Origin: {_OWN}@evil.example"),
    "an origin below its own": _foreign(f"Origin: {_OWN}.evil.example"),
    "two origins": _foreign(f"Origin: {_OWN}", "Origin: https://evil.example"),
    "two origins, the other way round": _foreign("Origin: https://evil.example", f"Origin: {_OWN}"),
    "another site's page": _cross_site(),
    "another site's picture": _cross_site("Sec-Fetch-Mode: no-cors"),
    "another site's page with its own origin": _cross_site(f"Origin: {_OWN}"),
    "another site's link": _foreign("Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"),
    "a neighbour's page": _foreign("Sec-Fetch-Site: same-site"),
    "two sites": _cross_site("Sec-Fetch-Site: same-origin"),
}
_READS = {
    "page": "GET {}/",
    "page of an experiment": "GET {}/experiments/KEY",
    "JSON": "GET {}/v1/experiments/KEY",
    "look": "GET {}/v1/experiments/KEY/recommendation",
    "stream": "GET {}/v1/experiments/KEY/stream",
    "chart": "GET {}/v1/experiments/KEY/charts/means.svg",
    "script": "GET {}/static/verdict.css",
    "metrics": "GET {}/metrics",
}
# What a browser has already is answered by a shorter way, which has to refuse the same.
_KNOWN_READS = ("look", "chart")
_ASK = "POST {}/v1/experiments/KEY/assignments"
_BY_FRAMEWORK = "Proxy-Connection: keep-alive"


def _status(server: Server, line: str, *headers: str, body: str = "") -> int:
    """Of one request in exactly these lines."""
    lines = "\r\n".join([f"{line} HTTP/1.1", *headers, f"Content-Length: {len(body)}", "", body])
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as wire, wire.makefile("rb") as reading:
        wire.sendall(lines.replace(_PORT, str(server.port)).encode())
        return int(reading.readline().split()[1])


@pytest.mark.parametrize("case", _CASES.values(), ids=_CASES)
def test_hosts_and_origins(server: Server, wire: JsonClient, experiment: str, case: _Case) -> None:
    """Pages, JSON, streams, pictures and asks by both ways are served or refused alike, and what is refused draws nothing."""

    def sent(line: str, *more: str, body: str = "") -> int:
        return _status(server, line.format(case.target).replace("KEY", experiment), *case.headers, *more, body=body)

    assert {name: sent(line) for name, line in _READS.items()} == dict.fromkeys(_READS, case.read)
    known = {name: sent(_READS[name], "If-None-Match: *") for name in _KNOWN_READS}
    assert known == dict.fromkeys(_KNOWN_READS, 304 if case.read == 200 else case.read)
    as_json = "Content-Type: application/json"
    asked = [sent(_ASK, as_json, body="{}") for _ in range(2)] + [sent(_ASK, as_json, _BY_FRAMEWORK, body="{}")]
    assert asked == [case.change] * 3
    assert wire.ask(experiment)["draw"] == asked.count(201) + 1


def test_there_are_thirty_of_each_and_more() -> None:
    """The table is long enough to have met what is odd."""
    assert sum(case.read != 200 for case in _CASES.values()) + sum(case.change == 403 for case in _CASES.values()) >= 30
