"""What the client promises of every operation, on both databases and whatever the network does."""

from __future__ import annotations

import asyncio
import random
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from bestarm import (
    AsyncClient,
    Conflict,
    DeadlineExceeded,
    Invalid,
    MalformedAnswer,
    NotFound,
    Observation,
    Problem,
    Reward,
    Unavailable,
    Unreachable,
)
from testing.faulty_proxy import Fault, FaultyProxy
from testing.json_client import JsonClient
from testing.server import Server
from tests.client.conftest import Certificate, Driven, NewClient

# After each of these the same request, sent again, gets through.
_PASSING: list[Fault] = [
    "reset_before", "reset_after", "cut", "unavailable", "error", "garbage", "slow", "duplicate", "redirect", "not_found_page",
]  # fmt: skip


def test_ask_tell_look(client: Driven, key: str) -> None:
    """The three words of the service."""
    client.create(key, [{"key": "grey", "value": {"color": "#888"}}, "green"], sticky=True)
    shown = client.assign(key, "user-1")
    assert (shown.arm, shown.value, shown.draw, shown.is_fallback) == ("grey", {"color": "#888"}, 1, False)
    assert client.assign(key, unit="user-1").id == shown.id
    told = client.reward(shown, True)
    assert (told.status, told.reward, client.assignment(key, shown.id)) == ("rewarded", 1.0, told)
    seen = client.recommendation(key)
    assert (seen.arm, seen.observations, seen.arms[0].mean) == ("grey", 1, 1.0)


def test_a_recommendation_that_has_not_changed_is_not_sent_again(shaken: Driven, proxy: FaultyProxy, experiment: str) -> None:
    """The ETag is kept inside."""
    first = shaken.recommendation(experiment)
    assert shaken.recommendation(experiment) is first
    assert [request.headers.get("if-none-match") is None for request in proxy.requests] == [True, False]
    shaken.reward(shaken.assign(experiment), 1)
    assert shaken.recommendation(experiment).version == first.version + 2


def test_many_at_once(client: Driven, experiment: str) -> None:
    """Asks by units or by number, rewards with a result each, observations."""
    shown = client.assign_many(experiment, ["a", "b"])
    assert [(one.unit, one.draw) for one in shown] == [("a", 1), ("b", 2)]
    assert len(client.assign_many(experiment, count=3)) == 3
    told = [Reward(1, assignment=shown[0].id), Reward(1, assignment="asg_000000000099999999999999999"), Reward(0, unit="a")]
    assert [result.status for result in client.rewards(experiment, told)] == ["recorded", "not_found", "invalid"]
    observed = client.observe(experiment, [Observation("arm-0", 1), Observation("arm-1", 0, id="x")])
    assert [result.counts for result in observed] == [True, True]
    assert client.recommendation(experiment).observations == 3


def test_values_that_a_batch_tells_once(client: Driven, key: str) -> None:
    """Large values come once for each arm, and callers do not notice."""
    client.create(key, [{"key": "one", "value": "x" * 12_000}, {"key": "two", "value": "y" * 12_000}])
    assert {one.value[0] for one in client.assign_many(key, count=100)} == {"x", "y"}


def test_corrections(client: Driven, experiment: str) -> None:
    """A reward is replaced, or taken out."""
    shown = client.assign(experiment)
    client.reward(shown.id, 0, experiment=experiment)
    assert client.correct(shown, 1).reward == 1
    assert client.void(shown).status == "voided"


def test_a_life(client: Driven, key: str) -> None:
    """From a draft to the archive, with arms that come and go."""
    assert client.create(key, ["a", "b"], status="draft", sticky=True).status == "draft"
    assert client.patch(key, name="A life").name == "A life"
    assert client.start(key).status == "running"
    assert client.add_arm(key, "c", value=[3]).value == [3]
    assert client.patch_arm(key, "c", status="disabled").status == client.arm(key, "c").status == "disabled"
    assert [client.pause(key).status, client.resume(key).status] == ["paused", "running"]
    client.reward(client.assign(key, "u"), 1)
    assert client.conclude(key).concluded_arm == "a"
    assert [client.reopen(key).status, client.conclude(key, "b").concluded_arm] == ["paused", "b"]
    assert client.duplicate(key, f"{key}-again").status == "draft"
    assert [one.key for one in client.experiments(q=key)] == [f"{key}-again", key]
    assert client.archive(key).status == client.experiment(key).status == "archived"
    client.delete(key)
    assert [one.key for one in client.experiments(q=key, limit=1)] == [f"{key}-again"]


def test_refusals_are_errors_with_a_code(client: Driven, experiment: str) -> None:
    """With the status, the id of the request, and the fields at fault."""
    with pytest.raises(NotFound) as unknown:
        client.assign("nope")
    assert (unknown.value.code, unknown.value.status) == ("experiment_not_found", 404)
    assert unknown.value.request_id
    assert unknown.value.request_id in str(unknown.value)
    with pytest.raises(Conflict) as running:
        client.archive(experiment)
    assert running.value.code == "illegal_transition"
    with pytest.raises(Invalid) as wrong:
        client.assign(experiment, "u" * 300)
    assert wrong.value.errors[0]["pointer"] == "/unit"
    shown = client.assign(experiment)
    client.reward(shown, 1)
    with pytest.raises(Problem, match="reward_conflict"):
        client.reward(shown, 0)


@pytest.mark.parametrize("name", ["..", ".", "a/../../b", "a?b", "a#b", "é", " ", "%2e%2e"])
def test_a_name_leads_nowhere_else(client: Driven, name: str) -> None:
    """Whatever a caller takes for a key is one part of a path."""
    with pytest.raises(Problem) as refused:
        client.recommendation(name)
    assert refused.value.code in {"experiment_not_found", "validation_failed"}


@pytest.mark.parametrize("fault", _PASSING)
def test_a_fault_is_not_noticed_and_nothing_is_doubled(
    shaken: Driven, proxy: FaultyProxy, wire: JsonClient, key: str, fault: Fault
) -> None:
    """Each request meets the fault once; every draw and every reward is there, once."""
    calls: list[Callable[[], object]] = [
        lambda: shaken.create(key, ["a", "b"]),
        lambda: shaken.assign(key, "u"),
        lambda: shaken.assign_many(key, count=2),
        lambda: shaken.reward(wire.ask(key)["id"], 1, experiment=key),
        lambda: shaken.rewards(key, [Reward(1, assignment=wire.ask(key)["id"])]),
        lambda: shaken.observe(key, [Observation("a", 1)]),
        lambda: shaken.add_arm(key, "c"),
        lambda: shaken.pause(key),
    ]
    for call in calls:
        proxy.faults.append(fault)
        call()
    seen = shaken.recommendation(key)
    assert (seen.draws, seen.observations, len(seen.arms), seen.status) == (6, 3, 3, "paused")
    asked = [request.headers["idempotency-key"] for request in proxy.requests if request.path.endswith("/assignments")]
    assert len(set(asked)) == 1


def test_a_bad_network_for_a_while(shaken: Driven, proxy: FaultyProxy, experiment: str) -> None:
    """Every second request meets some fault: what was acknowledged is there, with its own reward, and nothing else."""
    chance = random.Random(7)  # noqa: S311 - no secret
    proxy.faults.extend(chance.choice([None, chance.choice(_PASSING)]) for _ in range(80))
    shown = [shaken.assign(experiment, f"user-{number}") for number in range(20)]
    for number, one in enumerate(shown):
        assert shaken.reward(one, number % 2).reward == number % 2
    proxy.faults.clear()
    assert [one.unit for one in shown] == [f"user-{number}" for number in range(20)]
    kept = [shaken.assignment(experiment, one.id) for one in shown]
    assert [(one.unit, one.arm, one.reward) for one in kept] == [(one.unit, one.arm, i % 2) for i, one in enumerate(shown)]
    seen = shaken.recommendation(experiment)
    assert (seen.draws, seen.observations, sorted(one.draw for one in kept)) == (20, 20, list(range(1, 21)))


def test_a_lasting_fault_is_an_error_in_time(new_client: NewClient, proxy: FaultyProxy, experiment: str) -> None:
    """The deadline is over all tries, and the error says what the last one met."""
    hurried = new_client(proxy.url, timeout=0.15)
    lasting: list[tuple[Fault, type[Exception]]] = [
        ("reset_before", Unreachable),
        ("unavailable", Unavailable),
        ("garbage", MalformedAnswer),
        ("redirect", MalformedAnswer),
        ("not_found_page", MalformedAnswer),
        ("hang", DeadlineExceeded),
        ("trickle", DeadlineExceeded),
    ]
    for fault, error in lasting:
        proxy.always = fault
        with pytest.raises((error, DeadlineExceeded)):
            hurried.assign(experiment)
        with pytest.raises((error, DeadlineExceeded)):
            hurried.recommendation(experiment)


def test_a_service_that_says_when_is_left_alone_until_then(new_client: NewClient, proxy: FaultyProxy, experiment: str) -> None:
    """`Retry-After` beyond the deadline ends the call at once."""
    proxy.always = "unavailable"
    proxy.retry_after = "30"
    with pytest.raises(Unavailable) as told:
        new_client(proxy.url, timeout=5).assign(experiment)
    assert (told.value.retry_after, told.value.code, len(proxy.requests)) == (30.0, "overloaded", 1)


def test_watching_goes_on_after_a_break(shaken: Driven, proxy: FaultyProxy, wire: JsonClient, experiment: str) -> None:
    """Every state that is seen is new, and nothing acknowledged is missed."""
    seen = shaken.watch(experiment)
    first = next(seen)
    proxy.down()
    told = wire.tell(experiment, wire.ask(experiment)["id"], 1)
    proxy.faults.extend(["unavailable", "reset_before", "garbage"])
    proxy.up()
    second = next(seen)
    seen.close()
    assert (first.draws, second.observations, told["status"]) == (0, 1, "rewarded")
    assert proxy.requests[-1].headers["last-event-id"] == str(first.version)


def test_what_cannot_be_watched_is_an_error(client: Driven) -> None:
    """A refusal that will not pass is not asked for again."""
    with pytest.raises(NotFound) as refused:
        next(client.watch("nope"))
    assert refused.value.code == "experiment_not_found"


def test_a_service_behind_tls(new_client: NewClient, server: Server, experiment: str, certificate: Certificate) -> None:
    """With the authority that the caller trusts, and with the deadline also while the connection is being encrypted."""
    with FaultyProxy(server.port, ssl_context=certificate.server()) as proxy:
        url = proxy.url.replace("http://127.0.0.1", "https://localhost")
        trusting = new_client(url, ssl_context=certificate.client(), timeout=10)
        assert trusting.assign(experiment).draw == 1
        assert trusting.reward_later(trusting.assign(experiment), 1)
        with pytest.raises(Unreachable, match="CERTIFICATE_VERIFY_FAILED"):
            new_client(url, timeout=3).assign(experiment)
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(DeadlineExceeded):
        new_client(f"https://127.0.0.1:{silent.getsockname()[1]}", timeout=0.1).assign(experiment)


def test_a_key_goes_with_every_request(new_client: NewClient, proxy: FaultyProxy, experiment: str) -> None:
    """As a bearer token, also with those of the queue."""
    keyed = new_client(proxy.url, key="ba_secret", flush_seconds=0.01)
    assert keyed.reward_later(keyed.assign(experiment), 1)
    assert keyed.flush()
    assert {request.headers["authorization"] for request in proxy.requests} == {"Bearer ba_secret"}
    assert "ba_secret" not in repr(vars(keyed.client))


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_event_loops_of_several_threads_share_a_client(proxy: FaultyProxy, experiment: str) -> None:
    """Each keeps its own connection, however they take turns."""
    client = AsyncClient(proxy.url, timeout=10)
    turns = threading.Barrier(3)

    async def ask() -> int:
        turns.wait()
        return (await client.assign(experiment)).draw or 0

    def asks() -> list[int]:
        with asyncio.Runner() as runner:
            draws = [runner.run(ask()) for _ in range(10)]
            runner.run(client.close())  # the connections of this loop
            return draws

    with ThreadPoolExecutor(3) as threads:
        draws = [threads.submit(asks) for _ in range(3)]
        assert sorted(draw for one in draws for draw in one.result()) == list(range(1, 31))
    assert proxy.connections == 3
