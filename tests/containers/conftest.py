"""One engine for the whole run, and the project on it, built from this checkout."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from testing.containers.base_images import make_base_images
from testing.containers.compose_project import ROOT, ComposeProject
from testing.containers.debian import NoContainers
from testing.containers.engine import ContainerEngine
from testing.json_client import JsonClient
from tests.docs.texts import blocks_of, text_of

_IMAGES = {"db": "postgres", "caddy": "caddy", "prometheus": "prometheus"}
"""The services of the compose file whose images have a stand-in."""


def deploy_blocks() -> list[str]:
    """The commands below "Deploy" in the README, in their order."""
    deploy = text_of("README.md").partition("\n## Deploy\n")[2].partition("\n## ")[0]
    return [content for _, content in blocks_of(deploy)]


class Clock:
    """How long each step took, in seconds."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def measured(self, step: str) -> Iterator[None]:
        """Of what happens inside."""
        began = time.monotonic()
        yield
        self.seconds[step] = round(time.monotonic() - began, 1)


@pytest.fixture(scope="session")
def clock() -> Clock:
    """Of a newcomer, from an empty machine to the first recommendation."""
    return Clock()


@pytest.fixture(scope="session")
def container_engine(clock: Clock) -> Iterator[ContainerEngine]:
    """An engine that knows the base images; a sentence and nothing else where none can be started."""
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    with tempfile.TemporaryDirectory(prefix="bestarm-engine-", ignore_cleanup_errors=True) as folder:
        try:
            with clock.measured("engine"):
                engine = ContainerEngine(Path(folder))
        except NoContainers as missing:
            pytest.exit(str(missing), returncode=1)
        with engine:
            with clock.measured("base images"):
                make_base_images(engine, {stand_in: services[name]["image"] for name, stand_in in _IMAGES.items()})
            yield engine


@pytest.fixture(scope="session")
def built(container_engine: ContainerEngine, clock: Clock, tmp_path_factory: pytest.TempPathFactory) -> ComposeProject:
    """The project with its secrets, and its image built by the unchanged Dockerfile."""
    project = ComposeProject(container_engine, tmp_path_factory.mktemp("project"))
    project.make_secrets()
    with clock.measured("build"):
        project("build")
    return project


@pytest.fixture(scope="session")
def compose(built: ComposeProject, clock: Clock) -> ComposeProject:
    """The project, up as the README says; each test leaves it so, and keeps apart from the others by its experiment's key."""
    with clock.measured("up"):
        built.engine.run("sh", "-euc", deploy_blocks()[0], cwd=built.folder)
    return built


@pytest.fixture
def wire(compose: ComposeProject) -> Iterator[JsonClient]:
    """A client of the service, with the administrator's key."""
    with JsonClient(compose.url, key=compose.secret("admin_key")) as connection:
        yield connection
