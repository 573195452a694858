"""Streams are few enough in each worker that their connections and changes leave room for others."""

from __future__ import annotations

import time
from contextlib import ExitStack

import httpx
import pytest

from service.application.live.open_streams import OpenStreams
from service.domain.callers import ALL_SCOPES, ANYBODY, Caller
from service.domain.limits import MOST_STREAMS_OF_KEY
from service.errors import Overloaded, TooManyStreams
from testing.credentials import new_key
from testing.json_client import JsonClient, arms
from testing.server import Server, bearer


def _one(name: str) -> Caller:
    return Caller(ALL_SCOPES, name)


def test_a_key_has_its_part_and_all_have_theirs() -> None:
    """One too many of a key is its own fault, one too many of all is nobody's; each that ends makes room."""
    streams = OpenStreams(most=3, most_of_key=2)
    with ExitStack() as others:
        for _ in range(2):
            others.enter_context(streams.one_of(_one("key_1")))
        with pytest.raises(TooManyStreams):
            streams.require_place(_one("key_1"))
        with streams.one_of(_one("key_2")), pytest.raises(Overloaded):
            streams.require_place(_one("key_3"))
        streams.require_place(_one("key_3"))
    for _ in range(2):
        others.enter_context(streams.one_of(_one("key_1")))


def test_without_keys_all_count_together() -> None:
    """Nobody can be told apart."""
    streams = OpenStreams(most=3, most_of_key=1)
    with ExitStack() as open_ones:
        for _ in range(3):
            open_ones.enter_context(streams.one_of(ANYBODY))
        with pytest.raises(Overloaded):
            streams.require_place(ANYBODY)


def test_one_too_many_is_told_so(keyed_server: Server, keyed_wire: JsonClient, key: str) -> None:
    """429 in its own words; other keys watch on, and who closes one may open another."""
    keyed_wire.create(key, arms=arms(2))
    mine = bearer(new_key(keyed_wire)["secret"])
    path = f"/v1/experiments/{key}/stream"
    with keyed_server.client() as client, JsonClient(keyed_server.url) as plain, ExitStack() as watched:
        opened = [watched.enter_context(client.stream("GET", path, headers=mine)) for _ in range(MOST_STREAMS_OF_KEY - 1)]
        lines = [stream.iter_lines() for stream in opened]  # one that is dropped closes its stream
        assert all(any(line.startswith("id: ") for line in one) for one in lines)
        with keyed_server.client() as other:
            with other.stream("GET", path, headers=mine) as last:
                lines.append(last.iter_lines())
                assert any(line.startswith("id: ") for line in lines[-1])
                refused = plain.send("GET", path, **mine)
                assert (refused.status, refused.body["code"]) == (429, "too_many_streams")
                assert refused.headers["retry-after"] == "1"
                with other.stream("GET", path) as of_another_key:
                    assert of_another_key.status_code == 200
            _wait_for_place(other, path, mine)


def _wait_for_place(client: httpx.Client, path: str, sent: dict[str, str]) -> None:
    """The service sees a moment later that a stream was closed."""
    deadline = time.monotonic() + 10
    while True:
        with client.stream("GET", path, headers=sent) as again:
            if again.status_code == 200:
                return
        assert time.monotonic() < deadline
        time.sleep(0.01)
