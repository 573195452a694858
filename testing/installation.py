"""The package as others install it: built here, put with the locked dependencies into an environment away from here."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
_UV = Path(sys.executable).parent / "uv"
# Compiled once and kept: such an environment is started many times, as in production.
KEEP_BYTECODE = ""


def run(*command: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command that knows nothing of the checkout and of the settings here."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH" and not name.startswith("BESTARM_")}
    return subprocess.run(
        command,
        cwd=cwd,
        env=clean | {"PYTHONDONTWRITEBYTECODE": KEEP_BYTECODE} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def _must(*command: str | Path, cwd: Path) -> None:
    done = run(*command, cwd=cwd)
    if done.returncode:
        raise RuntimeError(f"{Path(command[0]).name} {command[1]} failed:\n{done.stdout}{done.stderr}")


def build(folder: Path, *, only_wheel: bool = False, source: Path = ROOT) -> Path:
    """The wheel in `folder`; made from the source archive beside it unless the wheel alone is wanted."""
    _must(_UV, "build", "--quiet", *(("--wheel",) if only_wheel else ()), "--out-dir", folder, source, cwd=folder.parent)
    (wheel,) = folder.glob("*.whl")
    return wheel


def install_client(wheel: Path, environment: Path) -> Path:
    """A new environment with the client and what it needs, in the locked versions; the Python of it."""
    python = environment / "bin/python"
    _must(_UV, "venv", "--quiet", "--python", sys.executable, environment, cwd=environment.parent)
    locked = ("--constraint", ROOT / "requirements/everything.txt")
    _must(_UV, "pip", "install", "--quiet", "--python", python, *locked, wheel, cwd=environment.parent)
    return python


def install(wheel: Path, environment: Path, locked: Path = ROOT / "requirements/service.txt") -> Path:
    """A new environment with the service's locked dependencies and the wheel; the command `bestarm` in it."""
    into = (_UV, "pip", "install", "--quiet", "--python", environment / "bin/python")
    _must(_UV, "venv", "--quiet", "--python", sys.executable, environment, cwd=environment.parent)
    _must(*into, "--require-hashes", "-r", locked, cwd=environment.parent)
    _must(*into, "--no-deps", wheel, cwd=environment.parent)
    return environment / "bin/bestarm"
