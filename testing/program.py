"""The `bestarm` command: as a process, and in this one, which takes no time to start."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import NamedTuple

from typer.testing import CliRunner


class Typed(NamedTuple):
    """What a command has said, and its exit code."""

    returncode: int
    stdout: str
    stderr: str


def bestarm(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command to its end, in a process."""
    return subprocess.run(
        [sys.executable, "-m", "service", *arguments],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


def typed(*arguments: str, on: str) -> Typed:
    """Run the command to its end on this database, in this process."""
    from service.cli import app  # noqa: PLC0415 - all that commands import is needed only where one is typed

    ended = CliRunner().invoke(app, arguments, env={"BESTARM_DATABASE_URL": on})
    if ended.exception is not None and not isinstance(ended.exception, SystemExit):
        raise ended.exception
    return Typed(ended.exit_code, ended.stdout, ended.stderr)
