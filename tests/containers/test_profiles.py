"""What compose adds when it is asked: certificates, and a watch on it all. Grafana has no stand-in, and is not started here."""

from __future__ import annotations

import json
import ssl
import time

import httpx
import pytest

from testing.containers.compose_project import ComposeProject
from testing.json_client import JsonClient, arms
from testing.processes import wait_until

pytestmark = [pytest.mark.containers, pytest.mark.process]
_BIND_LOW_PORTS = 1 << 10


def test_caddy_serves_the_site_with_a_certificate(compose: ComposeProject, wire: JsonClient, key: str) -> None:
    """Of its own authority for localhost; a stream comes through; and caddy may open low ports, and nothing else."""
    wire.create(key, arms=arms(2))
    compose("--profile", "tls", "up", "--detach", "--wait")
    authority = _eventually_printed(compose, "/data/caddy/pki/authorities/local/root.crt")
    url = f"https://localhost:{compose.engine.relay(443)}"
    headers = {"Authorization": f"Bearer {compose.secret('admin_key')}"}
    trusting = ssl.create_default_context(cadata=authority)
    with httpx.Client(base_url=url, headers=headers, verify=trusting, timeout=60) as client:
        wait_until(lambda: _listens(client), "caddy listens")
        with client.stream("GET", f"/v1/experiments/{key}/stream") as stream:
            events = (json.loads(line[6:]) for line in stream.iter_lines() if line.startswith("data: "))
            assert next(events)["draws"] == 0
            assert client.post(f"/v1/experiments/{key}/assignments", json={}).status_code == 201
            assert next(events)["draws"] == 1
        assert client.get("/v1/experiments", headers={"Authorization": ""}).status_code == 401
    status = compose("exec", "-T", "caddy", "grep", "CapEff", "/proc/1/status").stdout
    assert int(status.split()[1], 16) == _BIND_LOW_PORTS
    compose("--profile", "tls", "rm", "--stop", "--force", "caddy")


def _eventually_printed(compose: ComposeProject, path: str) -> str:
    deadline = time.monotonic() + 60
    while (found := compose("exec", "-T", "caddy", "cat", path, check=False)).returncode:
        assert time.monotonic() < deadline, found.stderr
        time.sleep(0.5)
    return found.stdout


def _listens(client: httpx.Client) -> bool:
    """Caddy's authority is there a moment before it listens."""
    try:
        client.get("/healthz")
    except httpx.ConnectError:
        return False
    return True


def test_prometheus_watches_the_service_by_the_rules(compose: ComposeProject, wire: JsonClient) -> None:
    """In the network of compose, without a key, by the name that the service answers to."""
    compose("--profile", "observability", "up", "--detach", "--wait", "prometheus")
    assert wire.send("GET", "/readyz").status == 200
    with httpx.Client(base_url=f"http://127.0.0.1:{compose.engine.relay(9090)}/api/v1", timeout=60) as client:
        deadline = time.monotonic() + 90
        while not (ready := _result(client, "bestarm_ready")):
            assert time.monotonic() < deadline, client.get("/targets").text
            time.sleep(1)
        assert [one["value"][1] for one in ready] == ["1"]
        rules = client.get("/rules").json()["data"]["groups"][0]["rules"]
        assert len(rules) > 10
        assert {rule["health"] for rule in rules} <= {"ok", "unknown"}
    compose("--profile", "observability", "rm", "--stop", "--force", "prometheus")


def _result(client: httpx.Client, query: str) -> list[dict[str, list[str]]]:
    try:
        found: list[dict[str, list[str]]] = client.get("/query", params={"query": query}).json()["data"]["result"]
    except httpx.TransportError:
        return []  # it is still starting
    return found
