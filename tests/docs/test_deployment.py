"""The container files keep their promises, as far as reading shows it: `make test-compose` brings them up for real."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from service import cli, serving
from tests.docs.texts import ROOT, all_text, text_of

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
    """Unless the operator says otherwise, which the service is told, so that it can refuse; the database is not published."""
    published = "${BESTARM_PUBLISHED_ADDRESS:-127.0.0.1}"
    assert [port.rpartition(":${")[0] for port in SERVICES["service"]["ports"]] == [published]
    assert SERVICES["service"]["environment"]["BESTARM_PUBLISHED_ADDRESS"] == published
    assert "--insecure" not in SERVICES["service"]["command"]
    for name in ("prometheus", "grafana"):
        assert all(port.startswith("127.0.0.1:") for port in SERVICES[name]["ports"])
    assert [name for name, one in SERVICES.items() if "ports" in one] == ["service", "caddy", "prometheus", "grafana"]


def test_the_database_is_out_of_reach_for_what_stands_around_the_service() -> None:
    """It is in a network with the service and its migration alone."""
    assert [name for name, one in SERVICES.items() if "private" in one["networks"]] == ["db", "migrate", "service"]
    assert SERVICES["db"]["networks"] == ["private"]


def test_one_of_them_builds_the_image_and_both_use_it() -> None:
    """Two that build the same name fail each other on some engines; and no image is fetched that the file does not need."""
    assert [name for name, one in SERVICES.items() if "build" in one] == ["migrate"]
    assert SERVICES["service"]["image"] == SERVICES["migrate"]["image"]
    assert SERVICES["service"]["pull_policy"] == "never"
    assert not text_of("Dockerfile").startswith("# syntax=")


def test_what_is_not_always_wanted_has_a_profile() -> None:
    """Certificates and measurements are asked for."""
    profiles = {name: one["profiles"] for name, one in SERVICES.items() if "profiles" in one}
    assert profiles == {"caddy": ["tls"], "prometheus": ["observability"], "grafana": ["observability"]}


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_nobody_takes_the_machine(name: str) -> None:
    """Logs are rotated; what runs for long has a limit of memory and of processes."""
    one = SERVICES[name]
    assert one["logging"]["options"] == {"max-size": "10m", "max-file": "5"}
    if name != "migrate":
        assert {"memory", "pids"} <= set(one["deploy"]["resources"]["limits"])


def test_things_start_in_order() -> None:
    """Database, then migrations, then the service; each waits for the one before to be ready, not only to be started."""
    assert SERVICES["migrate"]["depends_on"] == {"db": {"condition": "service_healthy"}}
    assert SERVICES["service"]["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}
    assert SERVICES["migrate"]["restart"] == "no"
    assert SERVICES["db"]["healthcheck"]["test"][:2] == ["CMD", "pg_isready"]


def test_what_runs_for_long_has_a_health_check_and_comes_back() -> None:
    """The database by its own check, the service by its image's, of which the file says only how often."""
    assert SERVICES["db"]["healthcheck"]["test"][0] == "CMD"
    assert SERVICES["service"]["healthcheck"].keys() == {"interval", "retries"}
    assert {SERVICES[name]["restart"] for name in ("db", "service")} == {"unless-stopped"}


def test_secrets_are_files_and_in_no_variable() -> None:
    """Any character may be in one; each container has those that it needs, and `compose-secrets` makes all of them."""
    given = {name: one["secrets"] for name, one in SERVICES.items() if "secrets" in one}
    assert given == {
        "db": ["database_password"],
        "migrate": ["database_password"],
        "service": ["database_password", "admin_key"],
        "grafana": ["grafana_password"],
    }
    for name, secrets in given.items():
        paths = [value for value in SERVICES[name]["environment"].values() if str(value).startswith("/run/secrets/")]
        assert sorted(paths) == sorted(f"/run/secrets/{secret}" for secret in secrets)
        assert not [variable for variable in SERVICES[name]["environment"] if re.search(r"(PASSWORD|KEY|SECRET)$", variable)]
    files = {name: one["file"] for name, one in COMPOSE["secrets"].items()}
    assert files == {name: f"./secrets/{name}" for name in ("database_password", "admin_key", "grafana_password")}
    assert f"for name in {' '.join(files)};" in text_of("scripts/compose-secrets")
    assert {".env", "/secrets/"} <= set(text_of(".gitignore").splitlines())


@pytest.mark.process
def test_secrets_are_made_once(tmp_path: Path) -> None:
    """For the users of the containers to read, in a folder that is closed to everybody else; those that are there stay."""
    script = tmp_path / "scripts/compose-secrets"
    script.parent.mkdir()
    shutil.copy(ROOT / "scripts/compose-secrets", script)
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets/admin_key").write_text("mine")
    for _ in range(2):
        subprocess.run([script], check=True)
    made = {path.name: path.read_text() for path in (tmp_path / "secrets").iterdir()}
    assert made["admin_key"] == "mine"
    assert len(made["database_password"].strip()) == len(made["grafana_password"].strip()) == 64
    assert made["database_password"] != made["grafana_password"]
    assert oct((tmp_path / "secrets").stat().st_mode) == "0o40700"
    assert oct((tmp_path / "secrets/database_password").stat().st_mode) == "0o100644"


def test_every_variable_that_compose_reads_is_in_the_example() -> None:
    """`.env.example` is the whole list."""
    read = set(re.findall(r"\$\{(\w+)", text_of("docker-compose.yml")))
    assert read == set(re.findall(r"^(\w+)=", text_of(".env.example"), re.MULTILINE))


def test_services_that_pages_name_are_services_of_the_file() -> None:
    """Whatever is to be run in a container of compose."""
    named = re.findall(r"docker compose (?:exec|run|logs|stop|restart)(?: -[T-]\S*)* (\w+)", all_text())
    assert {"db", "service"} <= set(named) <= set(SERVICES)


def test_the_database_is_on_a_volume() -> None:
    """Data outlives the container."""
    (mounted,) = SERVICES["db"]["volumes"]
    volume, _, path = mounted.partition(":")
    assert volume in COMPOSE["volumes"]
    assert path == "/var/lib/postgresql/data"
    assert re.fullmatch(r"postgres:1[67](\.\d+)?(-\w+)?", SERVICES["db"]["image"])


def test_requests_in_flight_may_finish() -> None:
    """The container is killed only after the service's own grace, in compose and with the page's `docker run`."""
    assert _seconds(SERVICES["service"]["stop_grace_period"]) > serving.GRACE_SECONDS
    told = re.search(r"^docker run .*--stop-timeout (\d+)", text_of("docs/deployment.md"), re.MULTILINE)
    assert told is not None
    assert int(told[1]) > serving.GRACE_SECONDS


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
    user, _, group = _last("USER").partition(":")
    assert re.fullmatch(r"[1-9]\d*", user)
    made = " ".join(value for instruction, value in _instructions() if instruction == "RUN")
    assert f"groupadd --system --gid {group} bestarm" in made
    assert f"useradd --system --uid {user} --gid bestarm" in made
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
