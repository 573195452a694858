"""The container files keep their promises. Tests have no engine to run them on; tests/test_package.py runs their commands."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from service import cli, serving
from tests.docs.texts import ROOT, text_of

COMPOSE: dict[str, Any] = yaml.safe_load(text_of("docker-compose.yml"))
SERVICES: dict[str, Any] = COMPOSE["services"]


def _seconds(text: str) -> int:
    return int(text[:-1]) * {"s": 1, "m": 60}[text[-1]]


def _instructions() -> list[tuple[str, str]]:
    joined = re.sub(r"\\\n\s*", "", "\n".join(line for line in text_of("Dockerfile").splitlines() if not line.startswith("#")))
    return [(line.partition(" ")[0], line.partition(" ")[2]) for line in joined.splitlines() if line]


def _last(name: str) -> str:
    return [value for instruction, value in _instructions() if instruction == name][-1]


def test_the_service_is_published_on_loopback_only() -> None:
    """There are no keys yet, so no other machine may reach it; the database is not published at all."""
    assert [port.split(":")[0] for port in SERVICES["service"]["ports"]] == ["127.0.0.1"]
    assert [name for name, one in SERVICES.items() if "ports" in one] == ["service"]


def test_things_start_in_order() -> None:
    """Database, then migrations, then the service; each waits for the one before to be ready, not only to be started."""
    assert SERVICES["migrate"]["depends_on"] == {"db": {"condition": "service_healthy"}}
    assert SERVICES["service"]["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}
    assert SERVICES["migrate"]["restart"] == "no"
    assert SERVICES["db"]["healthcheck"]["test"][:2] == ["CMD", "pg_isready"]


def test_what_runs_for_long_has_a_health_check_and_comes_back() -> None:
    """The database and the service."""
    for name in ("db", "service"):
        assert SERVICES[name]["healthcheck"]["test"][0] == "CMD"
        assert SERVICES[name]["restart"] == "unless-stopped"


def test_the_password_is_required_and_stays_out_of_the_url() -> None:
    """A missing one stops compose with a sentence; any character may be in it, because no URL is made of it."""
    for name, variable in (("db", "POSTGRES_PASSWORD"), ("service", "PGPASSWORD"), ("migrate", "PGPASSWORD")):
        assert SERVICES[name]["environment"][variable].startswith("${POSTGRES_PASSWORD:?")
    assert "PASSWORD" not in SERVICES["service"]["environment"]["BESTARM_DATABASE_URL"]
    assert re.search(r"^POSTGRES_PASSWORD=$", text_of(".env.example"), re.MULTILINE), "no password is shipped"
    assert ".env" in text_of(".gitignore").splitlines()


def test_every_variable_that_compose_reads_is_in_the_example() -> None:
    """`.env.example` is the whole list."""
    read = set(re.findall(r"\$\{(\w+)", text_of("docker-compose.yml")))
    assert read == set(re.findall(r"^(\w+)=", text_of(".env.example"), re.MULTILINE))


def test_the_database_is_on_a_volume() -> None:
    """Data outlives the container."""
    (mounted,) = SERVICES["db"]["volumes"]
    volume, _, path = mounted.partition(":")
    assert volume in COMPOSE["volumes"]
    assert path == "/var/lib/postgresql/data"
    assert re.fullmatch(r"postgres:1[67](\.\d+)?(-\w+)?", SERVICES["db"]["image"])


def test_requests_in_flight_may_finish() -> None:
    """The container is killed only after the service's own grace."""
    assert _seconds(SERVICES["service"]["stop_grace_period"]) > serving.GRACE_SECONDS


@pytest.mark.parametrize("name", ["migrate", "service"])
def test_containers_have_no_more_rights_than_they_need(name: str) -> None:
    """No capabilities, nothing writable but /tmp, where several workers add up their metrics."""
    one = SERVICES[name]
    assert (one["read_only"], one["cap_drop"], one["tmpfs"]) == (True, ["ALL"], ["/tmp"])  # noqa: S108 - of the container


@pytest.mark.parametrize("name", ["migrate", "service"])
def test_commands_are_commands_of_ours(name: str) -> None:
    """With options that exist."""
    command = [part if "${" not in part else "2" for part in SERVICES[name]["command"]]
    shown = CliRunner().invoke(cli.app, [command[0], "--help"], env={"COLUMNS": "200", "NO_COLOR": "1"})
    assert shown.exit_code == 0
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown.output)
    assert [option for option in command if option.startswith("--") and option not in plain] == []


def test_the_image_runs_as_nobody_in_particular() -> None:
    """A numbered user other than root, set after everything that needs root."""
    order = [instruction for instruction, _ in _instructions()]
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", _last("USER"))
    assert "RUN" not in order[order.index("USER") :]


def test_the_image_starts_the_command_itself() -> None:
    """Exec form, so that signals reach it; the health check needs nothing that a slim image lacks."""
    assert json.loads(_last("ENTRYPOINT")) == ["bestarm"]
    assert json.loads(_last("CMD")) == ["serve"]
    assert _last("STOPSIGNAL") == "SIGTERM"
    check = json.loads(_last("HEALTHCHECK").partition("CMD ")[2])
    assert check[:2] == ["python", "-c"]
    assert "/readyz" in check[2]
    compile(check[2], "health check", "exec")
    compile(SERVICES["service"]["healthcheck"]["test"][-1], "health check", "exec")


def test_the_image_is_built_in_two_stages_from_locked_dependencies() -> None:
    """Tools stay in the first stage; every dependency is checked by its hash."""
    stages = [value for instruction, value in _instructions() if instruction == "FROM"]
    assert len(stages) == 2
    assert all(stage.startswith("python:3.11-slim") for stage in stages)
    installs = [shlex.split(value) for instruction, value in _instructions() if instruction == "RUN" and "pip install" in value]
    assert all("--require-hashes" in install or "--no-deps" in install for install in installs)


def test_what_the_image_copies_exists_and_is_not_ignored() -> None:
    """And nothing else is sent to the builder."""
    ignored = text_of(".dockerignore").splitlines()
    assert "*" in ignored
    allowed = {line[1:].rstrip("/") for line in ignored if line.startswith("!")}
    for instruction, value in _instructions():
        if instruction == "COPY" and "--from" not in value:
            *sources, _ = value.split()
            assert [source for source in sources if source not in allowed or not (ROOT / source).exists()] == []
