"""Clients that take more than their part: others are served meanwhile, and afterwards everything is as before."""

from __future__ import annotations

import re
from typing import Any

import pytest

from testing.databases import NewDatabase
from testing.json_client import JsonClient
from testing.server import Server
from testing.torture.greedy import KINDS, beside, create_experiments

pytestmark = pytest.mark.process
_OTHERS = tuple(KINDS)
# The slow ones wait for these: less than ten seconds and a minute.
_LIMITS: dict[str, dict[str, Any]] = {"slow heads": {"BESTARM_HEAD_SECONDS": "2"}, "slow bodies": {"BESTARM_BODY_SECONDS": "2"}}
_FEW_FILES, _FEW_MEGABYTES = 60, 600


@pytest.mark.parametrize("kind", _OTHERS)
def test_nobody_else_is_refused(sqlite_databases: NewDatabase, kind: str) -> None:
    """Not one ask of another client fails, no connection stays, and memory has a bound."""
    with Server(sqlite_databases(), **_LIMITS.get(kind, {})) as server:
        with JsonClient(server.url) as client:
            create_experiments(client)
        found = beside(server, kind, KINDS[kind], seconds=0.0)
    assert found["others_failed"] == 0
    assert found["others"] > 0
    assert found["files_after"] - found["files_before"] < _FEW_FILES
    assert found["megabytes_after"] - found["megabytes_before"] < _FEW_MEGABYTES
    assert found["megabytes_at_most"] >= found["megabytes_after"]
    if kind in _LIMITS:
        assert found["came_to"].startswith("500 of 500 were told that they are late (408)")
    if kind == "clients that never read":
        stopped, closed = re.findall(r"(\d+) of 100 .* (\d+) closed", found["came_to"])[0]
        assert int(stopped) + int(closed) == 100
