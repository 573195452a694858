"""Is this checkout fit to be released? Build it, install it elsewhere, and let it answer (`make release-check`).

python -m scripts.release_check
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from zipfile import ZipFile

from service import __version__
from testing.installation import KEEP_BYTECODE, ROOT, build, install, run
from testing.json_client import JsonClient, arms
from testing.server import Server


@contextmanager
def step(what: str) -> Iterator[None]:
    """Say what is checked, and that it is well."""
    print(f"{what} ", end="", flush=True)  # noqa: T201 - a program's progress
    yield
    print("OK", flush=True)  # noqa: T201 - likewise


def require(condition: object, trouble: str) -> None:
    """Stop with a sentence unless it holds."""
    if not condition:
        raise RuntimeError(trouble)


def check_changelog() -> None:
    """An entry for the version, or one for what is not released yet."""
    headings = re.findall(r"^## \[([^\]]+)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    require({__version__, "Unreleased"} & set(headings), f"CHANGELOG.md says nothing about {__version__}.")


def check_wheel(wheel: Path) -> None:
    """The package with its migrations, and nothing beside it."""
    named = f"bestarm-{__version__}"
    require(wheel.name.startswith(f"{named}-"), f"{wheel.name} is not version {__version__}.")
    require((wheel.parent / f"{named}.tar.gz").exists(), "There is no source archive.")
    inside = set(ZipFile(wheel).namelist())
    strangers = {name for name in inside if name.split("/")[0] not in {"service", f"{named}.dist-info"}}
    require(not strangers, f"The wheel holds what is not the service: {sorted(strangers)[:5]}")
    scripts = {f"service/migrations/{path.relative_to(ROOT / 'migrations')}" for path in (ROOT / "migrations").rglob("*.py")}
    require(scripts and scripts <= inside, f"The wheel lacks migrations: {sorted(scripts - inside)}")


def check_command(bestarm: Path, folder: Path) -> None:
    """It tells the version."""
    told = run(bestarm, "--version", cwd=folder)
    require((told.returncode, told.stdout.strip()) == (0, f"bestarm {__version__}"), f"It says {told.stdout}{told.stderr}")


def check_service(bestarm: Path, folder: Path) -> None:
    """It makes its own database, answers an ask, and takes the reward."""
    database = f"sqlite:///{folder / 'bestarm.db'}"
    with (
        Server(database, program=[bestarm], cwd=folder, PYTHONDONTWRITEBYTECODE=KEEP_BYTECODE) as server,
        JsonClient(server.url) as client,
    ):
        client.create("release", arms=arms(2))
        asked = client.ask("release")
        told = client.tell("release", asked["id"], 1)
    require((asked["draw"], told["status"]) == (1, "rewarded"), f"It answered {asked} and {told}.")


def main() -> None:
    """All checks, in a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="bestarm-release-") as name:
        folder = Path(name)
        with step(f"CHANGELOG.md has an entry for {__version__}:"):
            check_changelog()
        with step("The source archive and the wheel of it hold what they should:"):
            wheel = build(folder / "dist")
            check_wheel(wheel)
        with step("The wheel and the locked dependencies go into an empty environment:"):
            bestarm = install(wheel, folder / "venv")
        with step("The command tells its version:"):
            check_command(bestarm, folder)
        with step("The service starts, draws an arm and takes its reward:"):
            check_service(bestarm, folder)
    print(f"bestarm {__version__} is fit to be released.")  # noqa: T201 - the verdict


if __name__ == "__main__":
    try:
        main()
    except RuntimeError as trouble:
        raise SystemExit(f"not OK\n{trouble}") from trouble
