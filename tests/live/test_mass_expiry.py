"""A whole window of silence at once: thousands of assignments expire exactly once, within seconds, while asks go on."""

from __future__ import annotations

import os
import sys
import time

import httpx
import pytest

from testing.databases import NewDatabase
from testing.server import Server

pytestmark = pytest.mark.process
# `make live-long` runs this with 100,000.
_SILENT = int(os.environ.get("BESTARM_LIVE_SILENT", "20000"))
_BATCH = 5_000
_WINDOW = 8.0 if _SILENT <= 20_000 else 40.0


def test_a_window_of_silence_expires_exactly_once_while_asks_go_on(new_database: NewDatabase, key: str) -> None:
    """Two workers sweep; every draw of the window expires once, in seconds, and no ask waits for the sweep to end."""
    path = f"/v1/experiments/{key}"
    with Server(new_database(), workers=2) as server, server.client() as client:
        made = {"key": key, "arms": [{"key": name} for name in "abcd"], "expiry": {"after_seconds": _WINDOW, "reward": 0}}
        assert client.post("/v1/experiments", json=made).status_code == 201
        began = time.monotonic()
        for _ in range(_SILENT // _BATCH):
            assert client.post(f"{path}/assignments/batch", json={"count": _BATCH}).status_code == 201
        client.patch(path, json={"expiry": None})
        wrote = time.monotonic() - began

        time.sleep(max(0.0, began + _WINDOW - 1.0 - time.monotonic()))  # until shortly before the first of them expires
        asked, slowest, applied, first = 0, 0.0, 0, None
        deadline = time.monotonic() + _WINDOW + 300
        while applied < _SILENT and time.monotonic() < deadline:
            sent = time.monotonic()
            assert client.post(f"{path}/assignments", json={}).status_code == 201
            slowest = max(slowest, time.monotonic() - sent)
            asked += 1
            seen = client.get(f"{path}/recommendation").json()
            applied = sum(arm["expired"] for arm in seen["arms"])
            first = first or (time.monotonic() if applied else None)
        took = time.monotonic() - (first or 0.0)
        time.sleep(2.5)  # further sweeps find nothing
        seen = client.get(f"{path}/recommendation").json()
        events = runs_of(client, path)

    expired = sum(arm["expired"] for arm in seen["arms"])
    assert (expired, seen["observations"], seen["pending"]) == (_SILENT, _SILENT, asked)
    assert {arm["mean"] for arm in seen["arms"]} == {0}
    assert sum(events) == _SILENT
    rate = _SILENT / max(took, 1e-9)
    figures = f"{_SILENT:,} drawn in {wrote:.1f} s, expired in {took:.1f} s ({rate:,.0f}/s)"
    sys.stdout.write(f"\n{figures}; slowest of {asked} asks meanwhile {slowest:.2f} s\n")
    assert took < wrote + 30, "an expiry costs no more than the draw did"


def runs_of(client: httpx.Client, path: str) -> list[int]:
    """How many draws each expiry run of the audit log settled."""
    runs: list[int] = []
    token = None
    while True:
        params = {"page_size": "100"} | ({"page_token": token} if token else {})
        page = client.get(f"{path}/events", params=params).json()
        runs += [event["details"]["expired"] for event in page["events"] if event["kind"] == "expiry_run"]
        token = page["next_page_token"]
        if not token:
            return runs
