"""The client and a service with keys."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from bestarm import Unauthorized
from testing.databases import NewDatabase
from testing.server import Server
from tests.client.conftest import NewClient

_ADMIN = "an-admin-key-of-some-length"


@pytest.fixture(scope="module")
def guarded(sqlite_databases: NewDatabase) -> Iterator[Server]:
    """A service that nobody may use without a key."""
    with Server(sqlite_databases(), BESTARM_ADMIN_KEY=_ADMIN) as running:
        yield running


def test_a_key_allows_what_its_scopes_say(new_client: NewClient, guarded: Server, key: str) -> None:
    """No key, an unknown one, one that may not do this: an error each; with a fallback the page is shown all the same."""
    new_client(guarded.url, key=_ADMIN).create(key, ["a", "b"])
    made = httpx.post(
        f"{guarded.url}/v1/keys",
        json={"label": "shop", "scopes": ["assign", "reward"]},
        headers={"authorization": f"Bearer {_ADMIN}"},
    )
    shop = new_client(guarded.url, key=made.json()["secret"], flush_seconds=0.01)
    assert shop.reward_later(shop.assign(key), 1)
    assert shop.flush()
    with pytest.raises(Unauthorized) as forbidden:
        shop.recommendation(key)
    assert (forbidden.value.status, forbidden.value.code) == (403, "forbidden")
    stranger = new_client(guarded.url, key="ba_unknown", flush_seconds=0.01)
    with pytest.raises(Unauthorized) as unknown:
        stranger.assign(key)
    assert (unknown.value.status, unknown.value.code) == (401, "unauthorized")
    assert new_client(guarded.url).assign(key, fallback="a").is_fallback


def test_rewards_wait_for_a_key_that_is_accepted(new_client: NewClient, guarded: Server, key: str) -> None:
    """A key that was revoked may be replaced: what is queued is kept meanwhile."""
    admin = new_client(guarded.url, key=_ADMIN)
    admin.create(key, ["a", "b"])
    stranger = new_client(guarded.url, key="ba_unknown", flush_seconds=0.01)
    assert stranger.reward_later(admin.assign(key), 1)
    assert not stranger.flush(0.3)
    assert (stranger.counts.rewards_waiting, stranger.counts.rewards_refused) == (1, 0)
