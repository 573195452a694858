"""`docker compose up`, and what an operator does next."""

from __future__ import annotations

import json
import re
import time
from threading import Thread

import pytest

from testing.asking_clients import AskingClients
from testing.containers.compose_project import ComposeProject
from testing.json_client import JsonClient, arms
from tests.docs.texts import text_of

pytestmark = [pytest.mark.containers, pytest.mark.process]
_ASKS = 20


def _tell_the_database_its_password(compose: ComposeProject) -> None:
    """With the page's own lines."""
    (told,) = re.findall(r"^docker compose exec -T db sh .*?^SQL$", text_of("docs/deployment.md"), re.MULTILINE | re.DOTALL)
    compose.engine.run("sh", "-c", told, cwd=compose.folder)


def _walk(wire: JsonClient, key: str) -> None:
    """The README's: create, ask, tell, look."""
    wire.create(key, arms=arms(2))
    for number in range(_ASKS):
        wire.tell(key, wire.ask(key, f"visitor-{number}")["id"], number % 2)
    _require_walked(wire, key)


def _require_walked(wire: JsonClient, key: str) -> None:
    look = wire.send("GET", f"/v1/experiments/{key}/recommendation").body
    assert (look["draws"], look["observations"]) == (_ASKS, _ASKS)


def test_it_comes_up_in_order_and_can_be_used(compose: ComposeProject, wire: JsonClient, key: str) -> None:
    """Database, migration, service, each when the one before is ready; whoever has the key may begin."""
    assert compose.state("db")["Health"]["Status"] == compose.state("service")["Health"]["Status"] == "healthy"
    migrated, serving = compose.state("migrate"), compose.state("service")
    assert (migrated["Status"], migrated["ExitCode"]) == ("exited", 0)
    assert migrated["FinishedAt"] < serving["StartedAt"]
    assert wire.send("GET", "/readyz").status == 200
    _walk(wire, key)
    with JsonClient(compose.url) as nobody:
        assert nobody.send("GET", "/v1/experiments").status == 401
    printed = compose("logs", "--no-log-prefix", "service").stdout.splitlines()
    assert {"serving", "Application startup complete."} <= {json.loads(line)["event"] for line in printed}
    everything = compose("logs").stdout + compose("config").stdout
    assert not [name for name in ("database_password", "admin_key") if compose.secret(name) in everything]


def test_what_is_stored_outlives_its_containers(compose: ComposeProject, wire: JsonClient, key: str) -> None:
    """A restart, and `down` and `up`, which make new ones."""
    _walk(wire, key)
    compose("restart", "service")
    compose.up()
    _require_walked(wire, key)
    compose("down")
    compose.up()
    _require_walked(wire, key)
    replayed = compose("exec", "-T", "service", "bestarm", "replay", key).stdout
    assert replayed.endswith("no difference.\n")


def test_the_service_has_no_rights_to_speak_of(compose: ComposeProject) -> None:
    """Not root, in its own group, no capability and none to get, a root that cannot be written to."""
    for name in ("service", "migrate"):
        (inspected,) = json.loads(compose.engine.run("docker", "inspect", f"bestarm-{name}-1").stdout)
        host = inspected["HostConfig"]
        assert (inspected["Config"]["User"], host["ReadonlyRootfs"], host["CapDrop"]) == ("10001:10001", True, ["ALL"])
        assert host["LogConfig"]["Config"] == {"max-size": "10m", "max-file": "5"}
    look = compose("exec", "-T", "service", "sh", "-c", "id -u; id -g; grep -E 'Cap(Eff|Prm)|NoNewPrivs' /proc/1/status").stdout
    assert look.split() == ["10001", "10001", "CapPrm:", "0" * 16, "CapEff:", "0" * 16, "NoNewPrivs:", "1"]
    for folder in ("/", "/opt/bestarm", "/var/lib/bestarm"):
        refused = compose("exec", "-T", "service", "touch", f"{folder}/mine", check=False)
        assert "Read-only file system" in refused.stderr
    owned = compose("exec", "-T", "service", "stat", "--format=%u:%g %a", "/var/lib/bestarm").stdout.strip()
    assert owned == "10001:10001 750"
    limits = json.loads(compose.engine.run("docker", "inspect", "bestarm-service-1").stdout)[0]["HostConfig"]
    assert (limits["Memory"], limits["PidsLimit"]) == (2 * 1024**3, 512)


def test_a_stop_under_load_loses_nothing_and_ends_in_time(compose: ComposeProject, wire: JsonClient, key: str) -> None:
    """Every ask that was answered is stored, once; the exit code is that of a success, before the grace period is over."""
    wire.create(key, arms=arms(3))
    with AskingClients(compose.url, key, secret=compose.secret("admin_key")) as load:
        load.wait_for(200)
        began = time.monotonic()
        compose("stop", "service")
        seconds = time.monotonic() - began
        stopped = compose.state("service")
        compose.up()
        load.wait_for(len(load.answered) + 200)
    assert (stopped["ExitCode"], stopped["OOMKilled"]) == (0, False)
    assert seconds < 30
    assert load.stored(wire) >= set(load.answered)
    assert len(load.stored(wire)) <= load.sent


def test_a_wrong_password_gets_its_sentence_and_can_be_changed(compose: ComposeProject, wire: JsonClient, key: str) -> None:
    """Another password in the file is not the database's; the page's statement makes it so, whatever its characters are."""
    _walk(wire, key)
    secret = compose.folder / "secrets/database_password"
    before = secret.read_text()
    try:
        changed = " p@ss:w/rd?#%20&=+ $HOME ${X} '\" `id` \\"
        secret.write_text(changed)
        refused = compose("up", "--detach", "--wait", "--force-recreate", check=False)
        assert refused.returncode != 0
        said = compose("logs", "--no-log-prefix", "migrate").stdout
        assert "Cannot migrate postgresql://bestarm:***@db:5432/bestarm" in said
        assert 'password authentication failed for user "bestarm"' in said
        assert changed not in said
        _tell_the_database_its_password(compose)
        compose.up()
        _require_walked(wire, key)
    finally:
        secret.write_text(before)
        _tell_the_database_its_password(compose)
        compose("up", "--detach", "--wait", "--force-recreate")


def test_another_key_is_the_key_after_a_restart(compose: ComposeProject, wire: JsonClient) -> None:
    """By the page's command; the one before is nobody's then."""
    (command,) = re.findall(r"`docker compose (restart service)`", text_of("docs/deployment.md"))
    secret = compose.folder / "secrets/admin_key"
    before = secret.read_text()
    try:
        secret.write_text(f"another-{before}")
        compose(*command.split())
        compose.up()
        assert wire.send("GET", "/v1/experiments").status == 401
        with JsonClient(compose.url, key=compose.secret("admin_key")) as renewed:
            assert renewed.send("GET", "/v1/experiments").status == 200
    finally:
        secret.write_text(before)
        compose(*command.split())
        compose.up()


def test_a_missing_secret_gets_its_sentence(compose: ComposeProject) -> None:
    """It names the file, and nothing is started without it."""
    compose("down")
    secret = compose.folder / "secrets/database_password"
    hidden = secret.rename(compose.folder / "secrets/elsewhere")
    try:
        refused = compose("up", "--detach", "--wait", check=False)
        assert refused.returncode != 0
        assert f"bind source path does not exist: {secret}" in refused.stderr
        assert not compose("ps", "--quiet").stdout
    finally:
        hidden.rename(secret)
        compose.up()


def test_it_waits_for_a_database_that_goes_away(compose: ComposeProject, wire: JsonClient, key: str) -> None:
    """503 meanwhile, and ready again by itself."""
    _walk(wire, key)
    compose("stop", "db")
    assert wire.send("GET", "/readyz").status == 503
    starting = Thread(target=compose, args=("start", "db"))
    starting.start()
    deadline = time.monotonic() + 60
    while wire.send("GET", "/readyz").status != 200:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    starting.join()
    _require_walked(wire, key)
