"""What a key may send: a burst at once, then so much a second; by every way in, and nothing of anybody else's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
from pydantic import SecretStr

from service.domain.callers import ALL_SCOPES, ANYBODY, Caller
from service.errors import RateLimited
from service.main import create_app
from service.settings import Settings
from service.web.access.rate_limits import Rate, RateLimits
from testing.credentials import ORIGIN, Credential, new_key
from testing.databases import NewDatabase
from testing.json_client import JsonClient, Reply, arms
from testing.server import ADMIN_KEY, Server, bearer


class _Clock:
    """Turned by hand."""

    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def _limits(clock: _Clock, secret: Rate = Rate(10.0, 3)) -> RateLimits:  # noqa: B008 - frozen
    return RateLimits(secret, Rate(1.0, 2), clock)


def _one(name: str = "key_1", origins: tuple[str, ...] | None = None) -> Caller:
    return Caller(ALL_SCOPES, name, origins=origins)


def test_a_burst_then_the_rate() -> None:
    """An idle key may send its burst; after that one token comes every tenth of a second, and no more than the burst gathers."""
    clock = _Clock()
    limits = _limits(clock)
    assert [limits.admits(_one()) for _ in range(4)] == [True, True, True, False]
    clock.now += 0.1
    assert [limits.admits(_one()) for _ in range(2)] == [True, False]
    clock.now += 100.0
    assert [limits.admits(_one()) for _ in range(4)] == [True, True, True, False]


def test_over_a_long_time_it_is_the_rate() -> None:
    """Whoever tries all the time gets exactly what the rate allows, and the burst once."""
    clock = _Clock()
    limits = _limits(clock)
    admitted = 0
    for _ in range(100_000):
        admitted += limits.admits(_one())
        clock.now += 0.001
    assert admitted == pytest.approx(100.0 * 10 + 3, abs=1)


def test_a_refusal_says_how_long_to_wait() -> None:
    """In whole seconds, after which it is let through."""
    clock = _Clock()
    limits = _limits(clock, Rate(0.4, 2))
    assert limits.admits(_one())
    assert limits.admits(_one())
    with pytest.raises(RateLimited) as refused:
        limits.require(_one())
    assert (refused.value.seconds, refused.value.quota, refused.value.window) == (3, 2, 5)
    clock.now += refused.value.seconds
    limits.require(_one())


def test_buckets_are_each_key_s_own() -> None:
    """Public keys have their own rate, and where there are no keys there is no bucket."""
    clock = _Clock()
    limits = _limits(clock)
    assert [limits.admits(_one("key_1")) for _ in range(4)][-1] is False
    assert limits.admits(_one("key_2"))
    assert [limits.admits(_one("key_3", (ORIGIN,))) for _ in range(3)] == [True, True, False]
    assert all(limits.admits(ANYBODY) for _ in range(100))
    unlimited = RateLimits(Rate(0.0, 1), Rate(0.0, 1), clock)
    assert all(unlimited.admits(_one()) for _ in range(100))
    assert not unlimited.limits_secret_keys


def test_a_token_that_was_given_back_is_there() -> None:
    """A request that goes the long way after all counts once."""
    clock = _Clock()
    limits = _limits(clock)
    for _ in range(10):
        assert limits.admits(_one())
        limits.give_back(_one())
    assert [limits.admits(_one()) for _ in range(4)] == [True, True, True, False]


def test_full_buckets_are_forgotten() -> None:
    """However many keys there were, those that are idle take no memory, and lose nothing by it."""
    clock = _Clock()
    limits = _limits(clock)
    for number in range(20_000):
        assert limits.admits(_one(f"key_{number}"))
        clock.now += 0.01
    assert len(limits._full) <= 4_096  # noqa: SLF001 - memory shows nowhere else


@asynccontextmanager
async def _client(database_url: str) -> AsyncIterator[httpx.AsyncClient]:
    """The application in this process."""
    app = create_app(Settings(database_url=database_url, admin_key=SecretStr(ADMIN_KEY), rate_limit=0.01, rate_burst=3))
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost", headers=bearer(ADMIN_KEY)) as client,
    ):
        yield client


def test_a_request_counts_once_wherever_it_is_answered(database_url: str) -> None:
    """Also one that says which state it knows, and passes two places that look at the key."""

    async def statuses() -> list[int]:
        async with _client(database_url) as client:
            known = {"If-None-Match": '"none"'}
            path = "/v1/experiments/none/recommendation"
            return [(await client.get(path, headers=known)).status_code for _ in range(4)]

    assert asyncio.run(statuses()) == [404, 404, 404, 429]


def test_signing_in_counts_as_well(database_url: str) -> None:
    """It writes a row, so a key may not do it any number of times either."""

    async def statuses() -> list[int]:
        async with _client(database_url) as client:
            return [(await client.post("/dashboard/session", json={"key": ADMIN_KEY})).status_code for _ in range(4)]

    assert asyncio.run(statuses()) == [200, 200, 200, 429]


@pytest.mark.process
def test_both_ways_in_take_from_one_bucket(new_database: NewDatabase) -> None:
    """Asks by the fast path and by the framework: together the burst, then 429 with its headers; nothing is drawn by those."""
    with (
        Server(
            new_database(),
            measured=True,
            key=ADMIN_KEY,
            BESTARM_RATE_LIMIT="0.02",
            BESTARM_RATE_BURST="6",
            BESTARM_PUBLIC_RATE_LIMIT="0.02",
            BESTARM_PUBLIC_RATE_BURST="2",
        ) as server,
        JsonClient(server.url, key=ADMIN_KEY) as admin,
        JsonClient(server.url) as fast,
        JsonClient(server.url, by_framework=True) as by_framework,
    ):
        admin.create("limited", arms=arms(2))
        mine = Credential("", new_key(admin, scopes=["assign"])["secret"]).sent
        secret = new_key(admin, kind="public", scopes=["assign"], experiments=["limited"], origins=[ORIGIN])["secret"]
        public = Credential("", secret, headers={"origin": ORIGIN}).sent
        asked = [
            client.send("POST", "/v1/experiments/limited/assignments", {"unit": "u"}, **mine)
            for client in (fast, by_framework) * 4
        ]
        by_page = [fast.send("POST", "/v1/experiments/limited/assignments", {"unit": "u"}, **public) for _ in range(3)]
        assert [reply.status for reply in asked] == [201] * 6 + [429] * 2
        assert [reply.status for reply in by_page] == [201, 201, 429]
        for reply in (*asked[-2:], by_page[-1]):
            _check_refusal(reply)
        assert [reply.headers["ratelimit-policy"] for reply in (asked[-1], by_page[-1])] == ['"key";q=6;w=300', '"key";q=2;w=100']
        wrong = [fast.send("POST", "/v1/experiments/limited/assignments", {}, authorization="Bearer x") for _ in range(20)]
        assert {reply.status for reply in wrong} == {401}
        assert admin.send("GET", "/v1/experiments/limited/recommendation").body["draws"] == 8


def _check_refusal(reply: Reply) -> None:
    assert reply.body["code"] == "rate_limited"
    seconds = reply.headers["retry-after"]
    assert 1 <= int(seconds) <= 50
    assert reply.headers["ratelimit"] == f'"key";r=0;t={seconds}'
