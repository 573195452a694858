"""The walk-through of the README, run as printed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testing.server import Server
from tests.docs.texts import ROOT, blocks_of, text_of

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


def test_the_walk_through_works_as_printed(fresh: Server) -> None:
    """Create, ask, tell, look, conclude: each answer has the shape that the README shows, and the best arm is found."""
    walk = _walk()
    assert len(walk) == 7
    # The visitors' taste is bash's RANDOM: seeded here, so that the same happens in every run.
    script = "\n".join(["set -eu", "RANDOM=11", *(f"echo '{_MARK}'\n{commands}" for commands, _ in walk)])
    done = subprocess.run(
        ["bash", "-c", script.replace(_PRINTED, fresh.url)],  # noqa: S607 - the user's own shell
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, "")
    _, *outputs = done.stdout.split(f"{_MARK}\n")
    answers: list[Any] = [json.loads(output) if output.strip() else None for output in outputs]
    for (commands, printed), answer in zip(walk, answers, strict=True):
        assert _shape(answer) == _shape(json.loads(printed) if printed else None), commands
    _, created, asked, told, _, looked, concluded = answers
    assert (created["status"], asked["draw"], told["status"]) == ("running", 1, "rewarded")
    assert (looked["arm"], looked["observations"], looked["version"]) == ("green", 61, 123)
    assert (concluded["arm"], concluded["reason"]) == ("green", "concluded")


def test_what_the_walk_through_left_behind_replays(fresh: Server, tmp_path: Path) -> None:
    """`bestarm replay` as the README types it finds no difference."""
    environment = os.environ | {"BESTARM_DATABASE_URL": fresh.database_url, "PYTHONPATH": str(ROOT)}
    command = next(line for line in text_of("README.md").splitlines() if "`bestarm replay" in line).split("`")[1].split()
    replayed = subprocess.run(
        [sys.executable, "-m", "service", *command[1:]],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (replayed.returncode, replayed.stdout) == (0, "checkout-button: 124 events replayed, no difference.\n")


@pytest.mark.parametrize("page", ["README.md", "docs/api.md"])
def test_printed_json_is_json(page: str) -> None:
    """Whoever copies an example gets something that parses."""
    for language, content in blocks_of(text_of(page)):
        if language == "json":
            json.loads(content)
