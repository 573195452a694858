"""The short way for asks and tells, held against the same application under uvicorn as it comes: the same bytes to both."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from testing.databases import NewDatabase
from testing.server import Server
from testing.torture.differential import compare
from testing.torture.odd_bytes import cases
from testing.torture.ways_in import WAYS, Way, both, sides

pytestmark = pytest.mark.process
_CASES: dict[Way, int] = {"direct": 200, "nginx": 60, "haproxy": 60}


@pytest.fixture(scope="module")
def servers(new_database: NewDatabase) -> Iterator[tuple[Server, Server]]:
    """The service, and the application under uvicorn."""
    with both(new_database(), new_database()) as running:
        yield running


@pytest.mark.parametrize("way", WAYS)
def test_the_same_bytes_have_the_same_answers_and_the_same_effect(servers: tuple[Server, Server], way: Way) -> None:
    """Cut anywhere, framed oddly, with bodies that are nearly right; and no proxy passes on what it has not seen."""
    with sides(servers, way) as reached:
        found = compare(reached, cases(way, _CASES[way]))
    assert found.failures == []
    assert found.differences == []
    assert found.smuggled == []
    assert {200, 201, 400, 404, 422} <= set(found.statuses)
