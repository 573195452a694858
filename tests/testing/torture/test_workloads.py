"""What clients of a workload do: nothing that a service would have to refuse for another reason than the one it provokes."""

from __future__ import annotations

from pathlib import Path
from threading import Event

import pytest

from testing.json_client import JsonClient
from testing.server import Server
from testing.torture.calls import CallLog, read_calls
from testing.torture.campaign import unexpected_answers
from testing.torture.crowd import create_experiments
from testing.torture.recording_client import RecordingClient, Target
from testing.torture.workloads import EXPERIMENTS, ledger


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_experiments_that_are_concluded_are_asked_like_the_others(server: Server, wire: JsonClient, tmp_path: Path) -> None:
    """They answer with an arm and no assignment, a batch with one for each unit: so there is nothing to reward."""
    create_experiments(server.url, "concluded.")
    for name in EXPERIMENTS:
        assert wire.send("POST", f"/v1/experiments/concluded.{name}/conclude", {"arm": "a"}).status == 200
    log = CallLog(tmp_path / "c.calls")
    client = RecordingClient("c", "ledger", Target([server.url], "concluded."), log, Event())
    for turn in range(40):
        ledger(client, turn)
    client.close()
    log.close()
    calls = read_calls(tmp_path)
    assert {call.kind for call in calls} >= {"ask", "ask_many", "look", "observe"}
    assert unexpected_answers(calls, may_stop=False) == []
