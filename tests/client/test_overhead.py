"""What the client costs."""

from __future__ import annotations

import pytest

from benchmarks import client_overhead
from testing.server import Server

_AT_MOST = 1.3


@pytest.mark.serial
def test_an_ask_costs_little_more_than_bare_httpx(sqlite_server: Server) -> None:
    """Processor time of this process, alternating in one run."""
    found = client_overhead.measured(sqlite_server.url, rounds=5, asks=100)
    assert found["blocking"]["median"] <= _AT_MOST
    assert found["asynchronous"]["median"] <= _AT_MOST
