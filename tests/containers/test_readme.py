"""A newcomer: the README's blocks, pasted in a checkout, and how long it all takes."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from testing.containers.compose_project import ComposeProject
from tests.containers.conftest import Clock, deploy_blocks
from tests.docs.texts import blocks_of, text_of

pytestmark = [pytest.mark.containers, pytest.mark.process]
_PRINTED = "http://127.0.0.1:8000"
_TIMES = os.environ.get("BESTARM_COMPOSE_TIMES")
"""The file that keeps how long each step took."""


def _walk_until_the_look() -> list[str]:
    """The commands of "A first experiment", down to its recommendation."""
    walk = text_of("README.md").partition("\n## A first experiment\n")[2].partition("\n**Conclude**")[0]
    return [content for language, content in blocks_of(walk) if language == "bash"]


def _paste(compose: ComposeProject, script: str) -> str:
    command = ["bash", "-euc", script.replace(_PRINTED, compose.url)]
    done = subprocess.run(command, cwd=compose.folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_walk_works_with_the_key_that_compose_made(compose: ComposeProject, clock: Clock) -> None:
    """The first experiment as "Deploy" has it, then the whole walk "with the same header"; and the steps of an operator."""
    _, first = deploy_blocks()
    assert json.loads(_paste(compose, first))["status"] == "running"
    (header,) = re.findall(r'-H "Authorization: [^"]*"', first)
    with clock.measured("walk"):
        said = _paste(compose, "\necho\n".join([f'curl() {{ command curl {header} "$@"; }}', *_walk_until_the_look()]))
    look = json.loads(said.strip().splitlines()[-1])
    assert (look["draws"], look["observations"], look["status"]) == (61, 61, "running")
    for step, command in {"restart": "restart service", "down and up": "down", "stop": "stop"}.items():
        with clock.measured(step):
            compose(*command.split())
            if step != "stop":
                compose.up()
    compose.up()
    kept = {"cores": os.cpu_count(), "seconds": clock.seconds}
    print(json.dumps(kept))  # noqa: T201 - for docs/deployment.md
    if _TIMES:
        Path(_TIMES).write_text(json.dumps(kept, indent=1) + "\n")
