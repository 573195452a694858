"""PostgreSQL drops every connection, as a restart, a failover or an administrator does: whoever looks next does not notice."""

from __future__ import annotations

import re
from collections.abc import Iterator

import httpx
import pytest
from fastapi.routing import APIRoute

from service.main import create_app
from service.web.problems import each_route
from testing.credentials import new_key
from testing.json_client import JsonClient, arms
from testing.postgres import Postgres
from testing.server import ADMIN_KEY, NO_CERTIFICATES, Server, bearer

_DATABASE = "dropped_connections"
_NAMES = {"key": "small", "arm": "arm-0", "chart": "means"}


def _reads() -> list[str]:
    """The path of every route that can be read."""
    routes = (route for route in each_route(create_app().routes) if isinstance(route, APIRoute))
    read = {route.path for route in routes if "GET" in (route.methods or ())}
    return sorted(path for path in read if "/oidc" not in path)  # those are of the identity provider, which there is none


@pytest.fixture(scope="module")
def workers(postgres: Postgres) -> Iterator[list[Server]]:
    """Two workers, each on its own port, so that a request reaches the one it is meant for."""
    url = postgres.copy_of("template_bestarm", _DATABASE)
    with Server(url, key=ADMIN_KEY) as first, Server(url, key=ADMIN_KEY) as second:
        with JsonClient(first.url, key=ADMIN_KEY) as client:
            client.create("small", arms=arms(2))
            client.create("large", arms=arms(200))
            told = {"observations": [{"arm": "arm-0", "reward": 1, "id": "import-1"}]}
            assert client.send("POST", "/v1/experiments/small/observations", told).status == 200
            assert client.send("POST", "/v1/experiments/large/observations", told).status == 200
        yield [first, second]
        logged = first.log.read_text() + second.log.read_text()
    assert "Traceback" not in logged, logged


@pytest.fixture(scope="module")
def ids(workers: list[Server]) -> dict[str, str]:
    """The id of one thing of each kind, by the part of the path that tells the kinds apart; webhooks have nobody to tell."""
    hook = {"url": "https://example.com/hook", "events": ["arm.changed"]}
    with JsonClient(workers[0].url, key=ADMIN_KEY) as client:
        return {
            "/observations/": "import-1",
            "/assignments/": client.ask("small")["id"],
            "/keys/": new_key(client)["id"],
            "/webhooks/": client.send("POST", "/v1/webhooks", hook).body["id"],
        }


def _status(server: Server, path: str) -> int:
    """The status alone: a stream does not end by itself."""
    with httpx.stream("GET", server.url + path, timeout=60, verify=NO_CERTIFICATES, headers=bearer(ADMIN_KEY)) as answer:
        return answer.status_code


@pytest.mark.parametrize("route", _reads())
def test_a_read_after_all_connections_were_dropped_is_answered(
    postgres: Postgres, workers: list[Server], ids: dict[str, str], route: str
) -> None:
    """By each worker, again and again, whatever it read before; of few arms and of many, which another process reads."""
    filled = _NAMES | {"id": next((one for part, one in ids.items() if part in route), "")}
    path = re.sub(r"{(\w+)(:\w+)?}", lambda name: filled[name[1]], route)
    paths = [path, path.replace("/small", "/large")] if path.endswith(("recommendation", "/small")) else [path]
    for turn in range(2):
        for one in (*paths, "/readyz"):
            assert [_status(server, one) for server in workers] == [200, 200], turn
        assert postgres.drop_connections(_DATABASE) > 0
    for one in paths:
        assert [_status(server, one) for server in workers] == [200, 200]


def test_an_ask_after_all_connections_were_dropped_is_answered(postgres: Postgres, workers: list[Server]) -> None:
    """What was idle when it was dropped is replaced before anything is sent on it."""
    for _ in range(3):
        for server in workers:
            with JsonClient(server.url, key=ADMIN_KEY) as client:
                client.tell("small", client.ask("small")["id"], 1)
        assert postgres.drop_connections(_DATABASE) > 0
