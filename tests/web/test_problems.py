"""What every answer has: a request's name, and for every error one shape."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from service.main import create_app


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nowhere", 404, "not_found"),
        ("GET", "/v1", 404, "not_found"),
        ("POST", "/v1/experiments/a/explode", 404, "not_found"),
        ("DELETE", "/v1/experiments", 405, "method_not_allowed"),
        ("PUT", "/healthz", 405, "method_not_allowed"),
    ],
)
def test_unknown_routes_and_methods_are_problems(api: httpx.Client, method: str, path: str, status: int, code: str) -> None:
    """What does not exist is refused in the same shape as everything else."""
    answer = api.request(method, path)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert answer.json() | {"status": status, "code": code} == answer.json()
    assert answer.json()["request_id"] == answer.headers["x-request-id"]
    if status == 405:
        assert answer.headers["allow"]


@pytest.mark.parametrize("given", ["trace-1:a/b+c=d.e_f".replace("_", "-"), "x" * 128])
def test_a_sane_request_id_is_kept(api: httpx.Client, given: str) -> None:
    """The caller's name for a request comes back, on good answers and on bad ones."""
    for path in ("/healthz", "/nowhere", "/v1/experiments"):
        assert api.get(path, headers={"X-Request-Id": given}).headers["x-request-id"] == given


@pytest.mark.parametrize("given", ["", "two words", "x" * 129, "caf\xe9", "<script>"])
def test_a_strange_request_id_is_replaced(api: httpx.Client, experiment: str, given: str) -> None:
    """Anything that could harm a log gets a new name, a different one each time, on every way through the service."""
    headers = [(b"X-Request-Id", given.encode("latin-1"))]
    named = {api.get("/healthz", headers=headers).headers["x-request-id"] for _ in range(2)}
    named |= {api.post(f"/v1/experiments/{experiment}/assignments", headers=headers).headers["x-request-id"] for _ in range(2)}
    assert len(named) == 4
    assert given not in named


def test_health_and_readiness(api: httpx.Client) -> None:
    """The process answers; the database answers and is at the newest migration."""
    assert (api.get("/healthz").status_code, api.get("/healthz").json()["status"]) == (200, "ok")
    assert (api.get("/readyz").status_code, api.get("/readyz").json()["status"]) == (200, "ready")
    assert "text/html" in api.get("/docs").headers["content-type"]


def test_an_unexpected_failure_tells_nothing_but_its_name() -> None:
    """A defect is 500 in the one shape, with the request's id and without a word about the inside."""
    app = create_app()

    @app.get("/defect")
    async def defect() -> None:
        raise ZeroDivisionError("secret")

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.get("/defect", headers={"X-Request-Id": "mine"})

    answer = asyncio.run(ask())
    assert (answer.status_code, answer.headers["content-type"]) == (500, "application/problem+json")
    assert (answer.json()["code"], answer.json()["request_id"], answer.headers["x-request-id"]) == (
        "internal_error",
        "mine",
        "mine",
    )
    assert answer.headers["connection"] == "close"  # as the server does after a defect
    assert "secret" not in answer.text


def test_a_defect_below_ofrep_has_the_protocol_s_shape() -> None:
    """Providers of OpenFeature read no problems, not even this one: of an application that was never started."""

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(create_app(), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.post("/ofrep/v1/evaluate/flags", headers={"X-Request-Id": "mine"})

    answer = asyncio.run(ask())
    assert (answer.status_code, answer.headers["content-type"]) == (500, "application/json")
    assert list(answer.json()) == ["errorDetails"]
    assert (answer.headers["x-request-id"], answer.headers["connection"]) == ("mine", "close")
    assert "context" not in answer.text
