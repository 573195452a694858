"""`bestarm mcp` as hosts start it: the official SDK's client, a real process, a real service with keys."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from testing.credentials import new_key
from testing.json_client import JsonClient
from testing.server import Server, free_port

pytestmark = pytest.mark.process
_READING = {"list_experiments", "read_experiment", "recommendation", "plan"}
_CHANGING = {"create_draft", "pause_experiment", "start_experiment", "conclude_experiment"}
Call = tuple[str, dict[str, Any]]


def _followed() -> dict[str, str]:
    """What lets coverage follow the program, of which the SDK would pass nothing on."""
    return {name: value for name, value in os.environ.items() if name.startswith("COVERAGE_")}


class Told:
    """What a session found: the tools, and the answer or the error of each call."""

    def __init__(self, tools: set[str], answers: list[Any]) -> None:
        self.tools = tools
        self.answers = answers


def _session(url: str, key: str | None, *calls: Call, options: tuple[str, ...] = ()) -> Told:
    """One session of a host: each call's structured answer, or the text of its error."""

    async def run() -> Told:
        arguments = ["-m", "service", "mcp", "--url", url, *options]
        wanted = StdioServerParameters(
            command=sys.executable,
            args=arguments,
            env=_followed() | ({} if key is None else {"BESTARM_KEY": key}),
            cwd=Path(__file__).parents[2],
        )
        async with Client(stdio_client(wanted)) as client:
            tools = {tool.name for tool in (await client.list_tools()).tools}
            answers: list[Any] = []
            for name, given in calls:
                told = await client.call_tool(name, given)
                answers.append(told.content[0].text if told.is_error else told.structured_content)  # type: ignore[union-attr]
            return Told(tools, answers)

    return asyncio.run(run())


def _draft(key: str) -> Call:
    return "create_draft", {"experiment": {"key": key, "arms": [{"key": "grey"}, {"key": "green", "value": {"color": "green"}}]}}


@pytest.fixture
def secret(keyed_wire: JsonClient) -> Callable[..., str]:
    """Makes keys."""
    return lambda *scopes: str(new_key(keyed_wire, scopes=list(scopes))["secret"])


def test_what_a_host_reads(keyed_server: Server, keyed_wire: JsonClient, secret: Callable[..., str], key: str) -> None:
    """Without --allow-changes there are only tools that read, in pages and cut where it is long; a plan has its sentence."""
    arms = [{"key": f"arm-{position}", "value": "x" * (5_000 if position == 0 else 5)} for position in range(30)]
    keyed_wire.create(key, arms=arms)
    drawn = keyed_wire.ask(key)
    keyed_wire.tell(key, drawn["id"], 1)
    question = {"question": {"arms": 2, "baseline": 0.2, "lift": 0.2, "per_day": 100}}
    told = _session(
        keyed_server.url,
        secret("read"),
        ("list_experiments", {"search": key}),
        ("read_experiment", {"experiment": key}),
        ("read_experiment", {"experiment": key, "arms_from": 25}),
        ("recommendation", {"experiment": key}),
        ("plan", question),
        ("read_experiment", {"experiment": f"{key}-not"}),
        ("read_experiment", {"experiment": "../keys"}),
    )
    listed, first, second, look, plan, missing, strange = told.answers
    assert told.tools == _READING
    assert [(one["key"], one["status"], one["number_of_arms"]) for one in listed["experiments"]] == [(key, "running", 30)]
    assert (len(first["arms"]), len(second["arms"])) == (25, 5)
    assert "arms_from=25" in first["arms_note"]
    assert first["arms"][0]["value"].endswith("(cut: 1,000 of 5,000 characters)")
    assert (look["arm"], look["verdict"]["state"], look["summary"][-1]) == (drawn["arm"], "collecting", ".")
    assert plan["summary"].startswith("About ")
    assert "experiment_not_found" in missing
    assert "request " in missing
    assert "pattern" in strange


def test_an_experiment_s_life(keyed_server: Server, keyed_wire: JsonClient, secret: Callable[..., str], key: str) -> None:
    """A draft, started and concluded only once that is confirmed, paused at once."""
    named = {"experiment": key}
    told = _session(
        keyed_server.url,
        secret("read", "manage"),
        _draft(key),
        ("start_experiment", named),
        ("start_experiment", named | {"confirm": "yes"}),
        ("read_experiment", named),
        ("start_experiment", named | {"confirm": key}),
        ("pause_experiment", named),
        ("start_experiment", named | {"confirm": key}),
        ("conclude_experiment", named | {"confirm": key}),
        ("conclude_experiment", named | {"arm": "green"}),
        ("read_experiment", named),
        ("conclude_experiment", named | {"arm": "green", "confirm": key}),
        ("pause_experiment", named),
        options=("--allow-changes",),
    )
    draft, asked, guessed, still, started, paused, resumed, unnamed, unsure, running, concluded, illegal = told.answers
    assert told.tools == _READING | _CHANGING
    assert (draft["status"], still["status"], started["status"]) == ("draft", "draft", "running")
    assert asked == guessed
    assert (asked["done"], asked["arguments"]) == (False, {"confirm": key})
    assert "live traffic among 2 arms" in asked["would"]
    assert (paused["status"], resumed["status"], running["status"]) == ("paused", "running", "running")
    assert (unnamed["done"], unsure["done"]) == (False, False)
    assert "no reward yet" in unnamed["would"]
    assert "Nothing is decided yet" in unsure["would"]
    assert unsure["arguments"] == {"arm": "green", "confirm": key}
    assert (concluded["status"], concluded["concluded_arm"]) == ("concluded", "green")
    assert "illegal_transition" in illegal
    assert keyed_wire.send("GET", f"/v1/experiments/{key}").body["status"] == "concluded"


def test_a_draft_cannot_be_created_running(keyed_server: Server, keyed_wire: JsonClient, key: str) -> None:
    """Starting needs its confirmation; creating is no way round it."""
    name, given = _draft(key)
    given["experiment"]["status"] = "running"
    told = _session(keyed_server.url, keyed_server.key, (name, given), options=("--allow-changes",))
    assert "draft" in told.answers[0]
    assert keyed_wire.send("GET", f"/v1/experiments/{key}").status == 404


def test_keys_and_their_scopes(keyed_server: Server, secret: Callable[..., str], key: str) -> None:
    """The service refuses, in words with a code: a key that may only read, a wrong one, none."""
    (refused,) = _session(keyed_server.url, secret("read"), _draft(key), options=("--allow-changes",)).answers
    assert "scope `manage`" in refused
    assert "code forbidden, request " in refused
    for wrong in ("ba_wrong", None):
        (unknown,) = _session(keyed_server.url, wrong, ("list_experiments", {})).answers
        assert "code unauthorized, request " in unknown
        assert "Traceback" not in unknown


def test_a_key_from_a_file(keyed_server: Server, secret: Callable[..., str], tmp_path: Path) -> None:
    """It comes before the environment's."""
    (tmp_path / "key").write_text(secret("read") + "\n")
    told = _session(keyed_server.url, "ba_wrong", ("list_experiments", {}), options=("--key-file", str(tmp_path / "key")))
    assert "experiments" in told.answers[0]


def test_a_service_that_is_away() -> None:
    """A sentence, a code and an id; a change may have been done."""
    calls: list[Call] = [("list_experiments", {}), ("pause_experiment", {"experiment": "any"})]
    read, change = _session(f"http://127.0.0.1:{free_port()}", None, *calls, options=("--allow-changes",)).answers
    assert "No answer from http://127.0.0.1:" in read
    assert "code unreachable, request " in read
    assert "may have been done" in change
    assert "Traceback" not in read + change


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--url", "ftp://127.0.0.1"], "--url"),
        (["--url", "http://me:secret@127.0.0.1"], "without a user"),
        (["--key-file", "/nowhere/key"], "/nowhere/key"),
    ],
)
def test_bad_options_are_refused(arguments: list[str], words: str) -> None:
    """One sentence, exit code 2."""
    done = _run([sys.executable, "-m", "service", "mcp", *arguments])
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_without_the_extra() -> None:
    """The sentence names it."""
    without = "import sys; sys.modules['mcp'] = None; from service.cli import app; app(['mcp'])"
    done = _run([sys.executable, "-c", without])
    assert (done.returncode, done.stdout) == (2, "")
    assert "bestarm[mcp]" in done.stderr


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    """With no input: one that starts after all ends at once."""
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False)
