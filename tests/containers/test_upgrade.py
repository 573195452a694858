"""From the commit before this one to this one, as docs/deployment.md says, with its image from a registry."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from testing.asking_clients import AskingClients
from testing.containers.compose_project import ROOT, ComposeProject
from testing.json_client import JsonClient, arms

pytestmark = [pytest.mark.containers, pytest.mark.process]


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S607
    assert done.returncode == 0, f"The upgrade starts from the commit before, and git says: {done.stderr}"
    return done.stdout.strip()


@pytest.fixture
def before(built: ComposeProject, tmp_path: Path) -> Iterator[Path]:
    """A checkout of the commit before, with the same secrets: as files, and as variables, which is how they once were."""
    commit = "HEAD" if _git("status", "--porcelain") else _git("rev-parse", "HEAD~1")
    folder = tmp_path / "before"
    folder.mkdir()
    archive = tmp_path / "before.tar"
    _git("archive", "--output", str(archive), commit)
    subprocess.run(["tar", "x", "-f", archive, "-C", folder], check=True)  # noqa: S607
    shutil.copytree(built.folder / "secrets", folder / "secrets")
    secrets = {"POSTGRES_PASSWORD": built.secret("database_password"), "BESTARM_ADMIN_KEY": built.secret("admin_key")}
    (folder / ".env").write_text("".join(f"{name}={value}\n" for name, value in secrets.items()))
    built("down", "--volumes", "--remove-orphans")
    yield folder
    (built.folder / ".env").unlink(missing_ok=True)
    built("down", "--volumes", "--remove-orphans")


def test_an_upgrade_and_the_way_back_keep_everything(built: ComposeProject, before: Path) -> None:
    """What was answered before, under the new release and after the way back is all there; replay finds every decision again."""
    engine = built.engine
    pushed = f"{engine.start_registry()}/bestarm:new"
    engine.run("docker", "tag", "bestarm:local", pushed)
    engine.run("docker", "push", pushed)
    engine.run("docker", "rmi", pushed)
    engine.run("docker", "compose", "up", "--detach", "--build", "--wait", cwd=before)
    (built.folder / ".env").write_text(f"BESTARM_IMAGE={pushed}\n")
    with JsonClient(built.url, key=built.secret("admin_key")) as wire:
        wire.create("upgraded", arms=arms(3))
        with AskingClients(built.url, "upgraded", secret=built.secret("admin_key"), clients=2) as asking:
            asking.wait_for(200)
            built("pull", "migrate")  # the other images cannot be fetched here
            built("up", "--detach", "--wait")
            asking.wait_for(len(asking.answered) + 200)
            image = engine.run("docker", "inspect", "bestarm-service-1", "--format", "{{.Config.Image}}").stdout.strip()
            engine.run("docker", "compose", "build", cwd=before)
            engine.run("docker", "compose", "up", "--detach", "--wait", cwd=before)
            asking.wait_for(len(asking.answered) + 200)
        assert asking.stored(wire) >= set(asking.answered)
    assert image == pushed
    back = engine.run("docker", "inspect", "bestarm-service-1", "--format", "{{.Config.Image}}").stdout.strip()
    assert back == "bestarm:local"
    replayed = built("exec", "-T", "service", "bestarm", "replay", "upgraded").stdout
    assert replayed.endswith("no difference.\n")
