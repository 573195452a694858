"""One engine for the whole run, and the project on it, built from this checkout."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from testing.containers.base_images import make_base_images
from testing.containers.compose_project import ROOT, ComposeProject
from testing.containers.debian import NoContainers
from testing.containers.engine import ContainerEngine
from testing.json_client import JsonClient

_IMAGES = {"db": "postgres", "caddy": "caddy", "prometheus": "prometheus"}
"""The services of the compose file whose images have a stand-in."""


@pytest.fixture(scope="session")
def container_engine() -> Iterator[ContainerEngine]:
    """An engine that knows the base images; a sentence and nothing else where none can be started."""
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    with tempfile.TemporaryDirectory(prefix="bestarm-engine-", ignore_cleanup_errors=True) as folder:
        try:
            engine = ContainerEngine(Path(folder))
        except NoContainers as missing:
            pytest.exit(str(missing), returncode=1)
        with engine:
            make_base_images(
                engine, {stand_in: services[name]["image"] for name, stand_in in _IMAGES.items() if name in services}
            )
            yield engine


@pytest.fixture(scope="session")
def built(container_engine: ContainerEngine, tmp_path_factory: pytest.TempPathFactory) -> ComposeProject:
    """The project with its secrets, and its image built by the unchanged Dockerfile."""
    project = ComposeProject(container_engine, tmp_path_factory.mktemp("project"))
    project.make_secrets()
    project("build")
    return project


@pytest.fixture(scope="session")
def compose(built: ComposeProject) -> ComposeProject:
    """The project, up; each test leaves it so, and keeps apart from the others by the key of its experiment."""
    built.up()
    return built


@pytest.fixture
def wire(compose: ComposeProject) -> Iterator[JsonClient]:
    """A client of the service, with the administrator's key."""
    with JsonClient(compose.url, key=compose.secret("admin_key")) as connection:
        yield connection
