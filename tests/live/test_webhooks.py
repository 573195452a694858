"""Messages of a service with several workers, real ones, that are killed for real: nothing is lost, nothing is out of order."""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter, defaultdict
from typing import Any

import httpx
import pytest

from testing.databases import NewDatabase
from testing.receiver import Received, Receiver
from testing.server import Server

_ARMS = [{"key": "a"}, {"key": "b"}]
_SETTINGS: dict[str, Any] = {
    "BESTARM_SWEEP_SECONDS": "0.05",
    "BESTARM_WEBHOOK_ALLOWED_NETWORKS": "127.0.0.0/8",
    "BESTARM_WEBHOOK_RETRY_SECONDS": "0.05",
}
_IMPATIENT = _SETTINGS | {"BESTARM_WEBHOOK_TIMEOUT_SECONDS": "0.7"}
pytestmark = pytest.mark.process


def _webhook(http: httpx.Client, receiver: Receiver, **wanted: object) -> str:
    """A webhook's secret."""
    made = http.post("/v1/webhooks", json={"url": receiver.url, "events": ["experiment.paused"]} | wanted)
    assert made.status_code == 201, made.text
    secret: str = made.json()["secret"]
    return secret


def _pause(http: httpx.Client, key: str, times: int) -> None:
    for _ in range(times):
        for move in ("pause", "resume"):
            assert http.post(f"/v1/experiments/{key}/{move}").status_code == 200


def _in_order(requests: list[Received], times: int) -> None:
    """Every pause of every experiment arrived, and nothing was told before what came before it was taken."""
    told: dict[str, list[int]] = defaultdict(list)
    taken: dict[str, set[int]] = defaultdict(set)
    for one in requests:
        data = one.message["data"]
        told[data["experiment"]].append(data["version"])
        assert set(range(2, data["version"], 2)) <= taken[data["experiment"]], "out of order"
        if one.fault is None:
            taken[data["experiment"]].add(data["version"])
    assert {key: sorted(versions) for key, versions in taken.items()} == {
        key: list(range(2, 2 * times + 2, 2)) for key in told
    }  # creation is 1, and each pause is followed by its end


def test_two_workers_send_each_message_once(new_database: NewDatabase) -> None:
    """Under traffic from several threads on several experiments, both workers at it, while nothing fails."""
    with Receiver() as receiver, Server(new_database(), workers=2, **_SETTINGS) as server, server.client() as http:
        secret = _webhook(http, receiver)
        keys = [f"experiment-{number}" for number in range(4)]
        for key in keys:
            assert http.post("/v1/experiments", json={"key": key, "arms": _ARMS}).status_code == 201
        threads = [threading.Thread(target=_pause, args=(http, key, 6)) for key in keys]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        receiver.wait_for(lambda: len(receiver.messages()) == 24)
        assert Counter(one.id for one in receiver.requests).most_common(1)[0][1] == 1, server.log.read_text()
        _in_order(receiver.requests, 6)
        assert all(one.is_signed_by(secret) for one in receiver.requests)
        assert "Traceback" not in server.log.read_text()


def test_a_worker_that_is_killed_while_it_delivers_loses_nothing(new_database: NewDatabase) -> None:
    """The worker that has a message on its way is killed, and then the next one; another, or a successor, goes on."""
    with Receiver() as receiver, Server(new_database(), workers=2, **_IMPATIENT) as server, server.client() as http:
        secret = _webhook(http, receiver)
        assert http.post("/v1/experiments", json={"key": "one", "arms": _ARMS}).status_code == 201
        for _ in range(2):
            before = len(receiver.requests)
            receiver.faults.extend(["hang"] * 100)  # on a busy machine a sender may give up before it is found
            _pause_patiently(server, "one")
            receiver.wait_for(lambda before=before: _senders(receiver, before))  # type: ignore[misc]
            killed = _senders(receiver, before)[-1]
            assert killed not in (server.process.pid, os.getpid())
            os.kill(killed, signal.SIGKILL)
            receiver.faults.clear()
        receiver.wait_for(lambda: len(receiver.messages()) == 2)
        _in_order(receiver.requests, 2)
        assert all(one.is_signed_by(secret) for one in receiver.requests)


def _senders(receiver: Receiver, before: int) -> list[int]:
    """The processes that were found out as senders of later requests."""
    return [one.sender for one in receiver.requests[before:] if one.sender]


def _pause_patiently(server: Server, key: str) -> None:
    """By connections of their own, because a worker may be gone just then."""
    for move in ("pause", "resume"):
        for _ in range(100):
            try:
                with server.client() as http:
                    answered = http.post(f"/v1/experiments/{key}/{move}", headers={"Idempotency-Key": os.urandom(8).hex()})
                assert answered.status_code == 200
                break
            except httpx.TransportError:
                continue


def test_a_service_that_is_killed_as_a_whole_goes_on_where_it_stopped(new_database: NewDatabase) -> None:
    """With a message on its way and others behind it; after the next start all of them arrive, the first one again."""
    url = new_database()
    with Receiver() as receiver:
        with Server(url, **_IMPATIENT) as server, server.client() as http:
            secret = _webhook(http, receiver)
            assert http.post("/v1/experiments", json={"key": "one", "arms": _ARMS}).status_code == 201
            receiver.faults.extend(["hang"])
            _pause(http, "one", 3)
            receiver.wait_for(lambda: receiver.requests)
            server.kill()
        with Server(url, **_IMPATIENT):
            receiver.wait_for(lambda: len(receiver.messages()) == 3)
        _in_order(receiver.requests, 3)
        assert receiver.requests[1].id == receiver.requests[0].id
        assert all(one.is_signed_by(secret) for one in receiver.requests)
