"""Where no thread can start, a page fails at once rather than wait for a name server without a bound."""

from __future__ import annotations

import socket
import threading

import pytest

from bestarm.resolver import Resolver


@pytest.mark.parametrize(
    ("trouble", "may_wait", "is_resolved"),
    [
        ("can't start new thread", True, False),
        ("can't start new thread", False, False),
        ("can't create new thread at interpreter shutdown", True, True),
        ("can't create new thread at interpreter shutdown", False, False),
    ],
)
def test_only_the_end_of_a_program_waits(
    monkeypatch: pytest.MonkeyPatch, *, trouble: str, may_wait: bool, is_resolved: bool
) -> None:
    """Nobody else is there to resolve the name for the last rewards."""
    asked: list[str] = []

    def resolve(host: str, *_: object, **__: object) -> list[tuple[int, int, int, str, tuple[str, int]]]:
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.0.2.1", 80))]

    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError(trouble)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    found = Resolver(may_wait=may_wait).addresses("name", 80)
    assert found.done()
    assert asked == ["name"] * is_resolved
    if is_resolved:
        assert found.result() == ["192.0.2.1"]
    else:
        assert isinstance(found.exception(), OSError)
