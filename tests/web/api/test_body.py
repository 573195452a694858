"""Who may send how much: no caller takes the room that all share, and a key in a page sends little."""

from __future__ import annotations

import pytest

from service.domain.callers import ALL_SCOPES, ANYBODY, Caller
from service.errors import Overloaded
from service.web.api.body import BodyMemory
from testing.json_client import JsonClient, arms
from testing.server import Server

_MIB = 1024 * 1024
_ONE, _OTHER, _THIRD = (Caller(ALL_SCOPES, name) for name in ("one", "other", "third"))


def test_no_key_takes_all_the_room_for_large_bodies() -> None:
    """A half at most; what is small needs no room, and what was let go is there for others."""
    memory = BodyMemory()
    with memory.holding(_ONE) as hold, memory.holding(_ONE) as once_more:
        hold(50 * _MIB)
        with pytest.raises(Overloaded):
            once_more(16 * _MIB)
        once_more(14 * _MIB)
        with memory.holding(_OTHER) as of_other, memory.holding(_THIRD) as of_third:
            of_other(60 * _MIB)
            with pytest.raises(Overloaded):
                of_third(5 * _MIB)
            of_third(32 * 1024)
    with memory.holding(ANYBODY) as hold:
        hold(100 * _MIB)
        hold(128 * _MIB)
        with pytest.raises(Overloaded):
            hold(129 * _MIB)


def test_a_public_key_sends_little(keyed_server: Server, keyed_wire: JsonClient, key: str) -> None:
    """It is in a page, and everybody has it: 16 MiB are for backends."""
    keyed_wire.create(key, arms=arms(2))
    wish = {"label": "a page", "scopes": ["reward"], "experiments": [key], "kind": "public", "origins": ["https://shop.example"]}
    public = keyed_wire.send("POST", "/v1/keys", wish).body["secret"]
    for secret, status in ((public, 413), (keyed_server.key, 422)):
        headers = {"authorization": f"Bearer {secret}", "content-type": "application/json"}
        headers |= {"origin": "https://shop.example"} if secret == public else {}
        with keyed_server.client() as client:
            sent = client.post(f"/v1/experiments/{key}/rewards", content=b"[0" + b" " * 2 * _MIB + b"]", headers=headers)
        assert sent.status_code == status
