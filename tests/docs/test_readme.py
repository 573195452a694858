"""The walk-through of the README, run as printed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testing.server import Server
from tests.docs.texts import ROOT, blocks_of, documents, text_of

_PRINTED = "http://127.0.0.1:8000"
_MARK = "--- next block ---"


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """What `make serve` starts: one worker on an embedded database that is not there yet."""
    with Server(f"sqlite:///{tmp_path_factory.mktemp('readme')}/bestarm.db") as running:
        yield running


def _walk() -> list[tuple[str, str | None]]:
    """The commands in order, each with the answer printed below it."""
    blocks = blocks_of(text_of("README.md"))
    following = [*blocks[1:], ("", "")]
    return [
        (content, after if kind == "json" else None)
        for (language, content), (kind, after) in zip(blocks, following, strict=True)
        if language == "bash"
    ]


def _shape(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Names and types, without the values."""
    if isinstance(value, dict):
        return {name: _shape(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_shape(item) for item in value]
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__


def _paste(server: Server, blocks: list[str]) -> list[Any]:
    """The answers to some blocks, pasted one after the other into one shell."""
    # The visitors' taste is bash's RANDOM: seeded here, so that the same happens in every run.
    script = "\n".join(["set -eu", "RANDOM=11", *(f"echo '{_MARK}'\n{commands}" for commands in blocks)])
    done = subprocess.run(
        ["bash", "-c", script.replace(_PRINTED, server.url)],  # noqa: S607 - the user's own shell
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, "")
    _, *outputs = done.stdout.split(f"{_MARK}\n")
    return [json.loads(output) if output.strip() else None for output in outputs]


def test_the_walk_through_works_as_printed_and_once_more(fresh: Server) -> None:
    """Create, ask, tell, look, conclude: each answer has the shape that the README shows, and the best arm is found."""
    walk = _walk()
    assert len(walk) == 7
    for _ in range(2):
        time.sleep(1)  # the walk names its experiment by the second it began in
        answers = _paste(fresh, [commands for commands, _ in walk])
        for (commands, printed), answer in zip(walk, answers, strict=True):
            assert _shape(answer) == _shape(json.loads(printed) if printed else None), commands
        _, created, asked, told, _, looked, concluded = answers
        assert (created["status"], asked["draw"], told["status"]) == ("running", 1, "rewarded")
        assert (looked["arm"], looked["observations"], looked["version"]) == ("green", 61, 123)
        assert (concluded["arm"], concluded["reason"]) == ("green", "concluded")


def test_every_block_of_the_walk_through_may_be_pasted_twice(fresh: Server) -> None:
    """Nothing is refused: the experiment is the same, the reward counts once, a conclusion stays."""
    time.sleep(1)
    setting, *blocks = [commands for commands, _ in _walk()]
    script = [setting, *(commands for commands in blocks for _ in range(2))]
    lines = "\n".join(script).replace(_PRINTED, fresh.url).replace("curl -s", "curl -sS --fail-with-body")
    done = subprocess.run(["bash", "-euc", lines], capture_output=True, text=True, check=False, timeout=300)  # noqa: S607 - the reader's own bash
    assert (done.returncode, done.stderr) == (0, "")


def test_what_the_walk_through_left_behind_replays(fresh: Server, tmp_path: Path) -> None:
    """`bestarm replay` as the README types it finds no difference."""
    with fresh.client() as client:
        key = client.get("/v1/experiments", params={"sort": "created_at"}).json()["experiments"][0]["key"]
    environment = os.environ | {"BESTARM_DATABASE_URL": fresh.database_url, "PYTHONPATH": str(ROOT)}
    command = next(line for line in text_of("README.md").splitlines() if "`bestarm replay" in line).split("`")[1].split()
    replayed = subprocess.run(
        [sys.executable, "-m", "service", *(part.replace("$key", key) for part in command[1:])],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (replayed.returncode, replayed.stdout) == (0, f"{key}: 124 events replayed, no difference.\n")


def test_the_command_is_where_the_readme_says() -> None:
    """After `make serve`, and as an installed package has it."""
    assert "`.venv/bin/bestarm`" in text_of("README.md")
    assert "$(BIN)/bestarm serve" in text_of("Makefile")
    scripts = tomllib.loads(text_of("pyproject.toml"))["project"]["scripts"]
    assert list(scripts) == ["bestarm"]


def test_pasted_commands_carry_no_comments() -> None:
    """An interactive zsh takes a comment at the end of a command for arguments."""
    for name in ("README.md", "CONTRIBUTING.md", "docs/operations.md"):
        for language, content in blocks_of(text_of(name)):
            if language in {"sh", "bash"}:
                assert not re.search(r"(^|\s)#\s", content), content


def test_the_reference_page_is_for_reading() -> None:
    """It sends nothing but the question for the document, so no page may promise that one can try requests there."""
    script = text_of("service/web/dashboard/static/docs.js")
    assert re.findall(r"import \{(.*)\} from .\./api\.js", script) == [" get "]
    assert (re.findall(r"await get\((.*)\)", script), "fetch(" in script) == (['"/openapi.json"'], False)
    promises = [line for page in documents() for line in page.read_text(encoding="utf-8").splitlines() if "`/docs`" in line]
    assert promises
    assert not [line for line in promises if re.search(r"\btry\b", line)]


@pytest.mark.parametrize("page", ["README.md", "docs/api.md"])
def test_printed_json_is_json(page: str) -> None:
    """Whoever copies an example gets something that parses."""
    for language, content in blocks_of(text_of(page)):
        if language == "json":
            json.loads(content)
