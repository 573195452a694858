"""A service of two workers that sweeps often, shared by the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from testing.databases import NewDatabase
from testing.server import Server


@pytest.fixture(scope="package")
def live(new_database: NewDatabase, engine: str) -> Iterator[Server]:
    """The running service; coverage follows it on PostgreSQL, as the one that all folders share."""
    with Server(new_database(), workers=2, measured=engine == "postgresql", BESTARM_SWEEP_SECONDS="0.1") as running:
        yield running


@pytest.fixture(scope="package")
def http(live: Server) -> Iterator[httpx.Client]:
    """A client of it."""
    with live.client() as client:
        yield client
