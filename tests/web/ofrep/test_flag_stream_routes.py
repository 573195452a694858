"""Where pages find no place to listen they are told so in the only way that an `EventSource` understands, and stay quiet."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from typing import Any

import httpx
from pydantic import SecretStr

from service.application.context import Context
from service.domain.callers import ALL_SCOPES, Caller
from service.domain.limits import MOST_FLAG_STREAMS, MOST_STREAMS_OF_KEY
from service.main import create_app
from service.settings import Settings
from testing.server import ADMIN_KEY, bearer

_FLAGS = "/ofrep/v1/evaluate/flags"
_STREAM = "/ofrep/v1/stream"
_PAGE = Caller(ALL_SCOPES, "key_of_the_page")
_CONTEXT = {"context": {"targetingKey": "u"}}


@asynccontextmanager
async def _service(database_url: str, **settings: Any) -> AsyncIterator[tuple[httpx.AsyncClient, Context]]:  # noqa: ANN401 - of any type
    """The application in this process, and what its routes know."""
    app = create_app(Settings(database_url=database_url, admin_key=SecretStr(ADMIN_KEY), **settings))
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost", headers=bearer(ADMIN_KEY)) as client,
    ):
        yield client, app.state.context


def _is_sent_away(answer: httpx.Response) -> bool:
    """The stream is one, has ended, and is not to be opened again for minutes."""
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
    name, _, milliseconds = answer.text.strip().partition(": ")
    return name == "retry" and 300_000 <= int(milliseconds) <= 600_000


def test_a_full_worker_names_no_stream(database_url: str) -> None:
    """All visitors have the page's one key: they fill the worker, not its part. Then answers name no stream, by another ETag."""

    async def walk() -> None:
        async with _service(database_url) as (client, context):
            made = await client.post("/v1/keys", json={"label": "page", "scopes": ["assign"]})
            client.headers.update(bearer(made.json()["secret"]))
            with ExitStack() as viewers:
                for _ in range(MOST_STREAMS_OF_KEY):
                    viewers.enter_context(context.streams.one_of(_PAGE))
                for _ in range(MOST_FLAG_STREAMS - 1):
                    viewers.enter_context(context.flag_streams.one_of(_PAGE))
                before = await client.post(_FLAGS, json=_CONTEXT)
                assert before.json()["eventStreams"][0]["endpoint"]["requestUri"].startswith(_STREAM)
                with context.flag_streams.one_of(_PAGE):
                    full = await client.post(_FLAGS, json=_CONTEXT, headers={"If-None-Match": before.headers["etag"]})
                    assert (full.status_code, full.json()) == (200, {"flags": before.json()["flags"]})
                    assert _is_sent_away(await client.get(_STREAM))
            again = await client.post(_FLAGS, json=_CONTEXT, headers={"If-None-Match": before.headers["etag"]})
            assert again.status_code == 304

    asyncio.run(walk())


def test_a_stream_that_is_named_can_be_opened(database_url: str) -> None:
    """Where there are keys by a token in its address: who can be given none is named no stream."""

    async def walk() -> None:
        async with _service(database_url) as (client, _):
            for secret in ADMIN_KEY, (await client.post("/v1/keys", json={"label": "a", "scopes": ["assign"]})).json()["secret"]:
                answer = await client.post(_FLAGS, json=_CONTEXT, headers=bearer(secret))
                named = [stream["endpoint"]["requestUri"] for stream in answer.json().get("eventStreams", [])]
                assert all("token=" in uri for uri in named)
            assert len(named) == 1

    asyncio.run(walk())


def test_a_key_that_sends_too_much(database_url: str) -> None:
    """Its pages come back later, and evaluations are refused as ever."""

    async def walk() -> None:
        async with _service(database_url, rate_limit=0.01, rate_burst=1) as (client, _):
            assert (await client.post(_FLAGS, json=_CONTEXT)).status_code == 200
            assert (await client.post(_FLAGS, json=_CONTEXT)).status_code == 429
            assert _is_sent_away(await client.get(_STREAM))
            assert (await client.post(_STREAM)).status_code == 429

    asyncio.run(walk())
