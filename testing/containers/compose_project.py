"""The project's own container files, brought up by a container engine as they are."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

from testing.containers.engine import ContainerEngine

ROOT = Path(__file__).parents[2]
_SERVICE_PORT = 8000


def copy_of_checkout(folder: Path) -> Path:
    """Every file of the project as it lies here, new ones included, without what git ignores."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split("\0")
    for name in filter(None, listed):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    return folder


class ComposeProject:
    """A copy of the checkout in which `docker compose` runs, and where its service is reached from here."""

    def __init__(self, engine: ContainerEngine, folder: Path) -> None:
        self.engine = engine
        self.folder = copy_of_checkout(folder)
        self.url = f"http://127.0.0.1:{engine.relay(_SERVICE_PORT)}"

    def __call__(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """`docker compose …`."""
        return self.engine.run("docker", "compose", *arguments, cwd=self.folder, check=check)

    def make_secrets(self) -> None:
        """As the README says."""
        subprocess.run([self.folder / "scripts/compose-secrets"], check=True)

    def secret(self, name: str) -> str:
        """The secret with this name, as the script made it."""
        return (self.folder / "secrets" / name).read_text().strip()

    def up(self, *profile: str) -> None:
        """Everything started, healthy or done."""
        self(*profile, "up", "--detach", "--wait")

    def state(self, service: str) -> dict[str, Any]:
        """How the container of a service is."""
        listed = self("ps", "--all", "--quiet", service).stdout.split()
        (inspected,) = json.loads(self.engine.run("docker", "inspect", *listed).stdout)
        state: dict[str, Any] = inspected["State"]
        return state
