"""The committed types are those of the API, the example keeps to them, and it runs."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.typescript_types import NODE_PROGRAMS, ROOT, TYPES, generated
from testing.json_client import JsonClient
from testing.server import Server

_FOLDER = ROOT / "typescript"
# Each line below such a comment must be an error: the compiler complains about a comment that expects none.
_MISTAKES = """
import { Bestarm } from "./example";
const service = new Bestarm("http://127.0.0.1:8000");
// @ts-expect-error
service.create({ key: "a", arms: [{ key: "b" }, { key: "c" }], stikcy: true });
// @ts-expect-error
service.look("a").then((seen) => seen.armm);
// @ts-expect-error
service.ask("a", "u").then((shown) => service.tell("a", shown.id, 1));
"""


@pytest.fixture(scope="module")
def wire(sqlite_server: Server) -> Iterator[JsonClient]:
    """A JSON client of the service; one engine is enough for programs that know nothing of it."""
    with JsonClient(sqlite_server.url) as connection:
        yield connection


def _node_program(name: str) -> Path:
    if not (NODE_PROGRAMS / name).exists():
        raise RuntimeError("Node's packages are not installed: `make node-packages` installs them.")
    return NODE_PROGRAMS / name


def _run(*command: str | Path, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.process
def test_the_types_are_current() -> None:
    """Generated anew they are the same."""
    assert _node_program("openapi-typescript").exists()
    is_current = TYPES.read_text() == generated()
    assert is_current, "The API has changed: `make typescript-types` writes its types anew."


@pytest.mark.process
def test_the_example_keeps_to_the_types(tmp_path: Path) -> None:
    """By the compiler, in its strict mode; it would refuse fields that the API does not have, or there would be a complaint."""
    for path in _FOLDER.iterdir():
        shutil.copy(path, tmp_path)
    (tmp_path / "mistakes.ts").write_text(_MISTAKES)
    checked = _run(_node_program("tsc"), "--project", tmp_path)
    assert (checked.returncode, checked.stdout) == (0, "")


def test_the_example_runs(sqlite_server: Server, wire: JsonClient, key: str, tmp_path: Path) -> None:
    """From the creation to the recommendation; what it told is what the experiment has."""
    bundled = _run(
        _node_program("esbuild"), _FOLDER / "example.ts", "--bundle", "--format=esm", f"--outfile={tmp_path}/example.mjs"
    )
    assert bundled.returncode == 0, bundled.stderr
    (tmp_path / "run.mjs").write_text(
        f'import {{ run }} from "./example.mjs";\nawait run("{sqlite_server.url}", undefined, "{key}");\n'
    )
    done = _run("node", tmp_path / "run.mjs")
    assert (done.returncode, done.stderr) == (0, "")
    seen = wire.send("GET", f"/v1/experiments/{key}/recommendation").body
    assert (seen["arm"], seen["observations"], seen["pending"]) == ("green", 40, 0)
    assert done.stdout == f"green 40 {seen['summary']}\n"
