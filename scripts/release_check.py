"""Is this checkout fit to be released? Build it, install it elsewhere, and let it answer (`make release-check`).

    python -m scripts.release_check [--release]

With --release CHANGELOG.md must have a dated entry for the version, and nothing left under "Unreleased"; without, it is said that
there is none yet.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from zipfile import ZipFile

from service import __version__
from testing.installation import KEEP_BYTECODE, ROOT, build, install, install_client, run
from testing.json_client import JsonClient, arms
from testing.server import Server


@contextmanager
def step(what: str) -> Iterator[None]:
    """Say what is checked, and that it is well."""
    print(f"{what} ", end="", flush=True)  # noqa: T201 - a program's progress
    yield
    print("OK", flush=True)  # noqa: T201 - a program's progress


def require(condition: object, trouble: str) -> None:
    """Stop with a sentence unless it holds."""
    if not condition:
        raise RuntimeError(trouble)


def release_date(changelog: str, version: str) -> str | None:
    """The date of the version's entry, if it has one and no change is left outside of it."""
    dated = re.search(rf"^## \[{re.escape(version)}\] - (\d{{4}}-\d\d-\d\d)$", changelog, re.MULTILINE)
    pending = re.search(r"^## \[Unreleased\]\n(?:(?!## ).*\n)*?- ", changelog, re.MULTILINE)
    return dated[1] if dated and not pending else None


def check_changelog(*, releasing: bool) -> bool:
    """Is the version's entry dated? Before a release it may not be, but what changed must stand somewhere."""
    text = (ROOT / "CHANGELOG.md").read_text()
    date = release_date(text, __version__)
    print("CHANGELOG.md: ", end="")  # noqa: T201 - a program's progress
    if date is None:
        require(not releasing, f"There is no dated entry for {__version__}, or changes are left under Unreleased.")
        require(re.search(r"^## \[Unreleased\]", text, re.MULTILINE), f"It says nothing about {__version__}.")
        print(f"not released yet, Unreleased stands for {__version__}")  # noqa: T201 - a program's progress
        return False
    print(f"{__version__} of {date} OK")  # noqa: T201 - a program's progress
    return True


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


def check_client(wheel: Path, python: Path, folder: Path) -> None:
    """The client is of the same version, alone in its wheel, typed, and needs nothing but httpx."""
    named = f"bestarm_client-{__version__}"
    require(wheel.name.startswith(f"{named}-"), f"{wheel.name} is not version {__version__}.")
    inside = set(ZipFile(wheel).namelist())
    strangers = {name for name in inside if name.split("/")[0] not in {"bestarm", f"{named}.dist-info"}}
    require("bestarm/py.typed" in inside and not strangers, f"The client's wheel holds {sorted(strangers)[:5]}, or is not typed.")
    told = run(python, "-c", "import bestarm; print(bestarm.__version__)", cwd=folder)
    require(told.stdout.strip() == __version__, f"The client says {told.stdout}{told.stderr}")


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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--release", action="store_true", help="the version is about to be tagged: its entry must be dated")
    is_dated = check_changelog(releasing=parser.parse_args().release)
    with tempfile.TemporaryDirectory(prefix="bestarm-release-") as name:
        folder = Path(name)
        with step("The source archive and the wheel of it hold what they should:"):
            wheel = build(folder / "dist")
            check_wheel(wheel)
        with step("The wheel and the locked dependencies go into an empty environment:"):
            bestarm = install(wheel, folder / "venv")
        with step("The command tells its version:"):
            check_command(bestarm, folder)
        with step("The service starts, draws an arm and takes its reward:"):
            check_service(bestarm, folder)
        with step("The client's wheel holds the client, and goes into an empty environment of its own:"):
            client = build(folder / "client-dist", source=ROOT / "client")
            check_client(client, install_client(client, folder / "client-venv"), folder)
    verdict = (
        "is fit to be released" if is_dated else "can be built and run; to be released, its entry in CHANGELOG.md needs a date"
    )
    print(f"bestarm {__version__} {verdict}.")  # noqa: T201 - the verdict


if __name__ == "__main__":
    try:
        main()
    except RuntimeError as trouble:
        raise SystemExit(f"not OK\n{trouble}") from trouble
