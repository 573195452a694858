"""Everything can be sent again: keys of asks that draw nothing, steps of an experiment's life."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from testing.json_client import JsonClient, Reply, arms
from testing.rows import Rows
from testing.server import Server


@pytest.fixture(scope="module", params=[False, True], ids=["hot", "framework"])
def wire(server: Server, request: pytest.FixtureRequest) -> Iterator[JsonClient]:
    """Both ways to the same use cases: the short one, and the framework."""
    with JsonClient(server.url, by_framework=request.param) as connection:
        yield connection


@pytest.fixture
def ask(wire: JsonClient, key: str) -> Callable[..., Reply]:
    """An ask of the test's experiment, with its whole reply."""

    def asking(unit: str | None, idempotency_key: str) -> Reply:
        body = {} if unit is None else {"unit": unit}
        return wire.send("POST", f"/v1/experiments/{key}/assignments", body, Idempotency_Key=idempotency_key)

    return asking


def _again(first: Reply, repeated: Reply) -> None:
    """The same answer, marked as given before."""
    assert (repeated.status, repeated.body) == (first.status, first.body)
    assert first.headers["Idempotency-Replayed"] is None
    assert repeated.headers["Idempotency-Replayed"] == "true"


def _reused(reply: Reply) -> None:
    assert (reply.status, reply.body["code"]) == (422, "idempotency_key_reused")


def test_a_sticky_ask_again_keeps_its_key(wire: JsonClient, key: str, ask: Callable[..., Reply]) -> None:
    """The first answer comes back whatever became of assignment, arm and unit since; another unit with that key is refused."""
    wire.create(key, arms=arms(3), sticky=True)
    drawn = wire.ask(key, "ann")
    first = ask("ann", "again")
    assert (first.status, first.body["reason"], first.body["status"]) == (200, "sticky", "pending")
    wire.tell(key, drawn["id"], 1)
    rewarded = ask("ann", "after the reward")
    assert (rewarded.body["status"], rewarded.body["reward"]) == ("rewarded", 1)
    arm = f"/v1/experiments/{key}/arms/{drawn['arm']}"
    wire.send("PATCH", arm, {"value": {"another": "value"}})
    wire.send("PATCH", arm, {"status": "disabled"})
    moved = wire.ask(key, "ann")
    assert moved["draw"] != drawn["draw"]
    wire.send("DELETE", f"/v1/experiments/{key}/assignments/{drawn['id']}/reward")
    _again(first, ask("ann", "again"))
    _again(rewarded, ask("ann", "after the reward"))
    _reused(ask("bob", "again"))
    wire.send("POST", f"/v1/experiments/{key}/conclude", {"arm": moved["arm"]})
    _again(first, ask("ann", "again"))


def test_a_concluded_answer_keeps_its_key(wire: JsonClient, experiment: str, key: str, ask: Callable[..., Reply]) -> None:
    """Also when the arm gets another value, and the experiment is archived; a draw's own key from before is known, too."""
    assert experiment == key
    drawn = ask("ann", "drawn")
    wire.send("POST", f"/v1/experiments/{key}/conclude", {"arm": "arm-1"})
    first, nobody = ask("ann", "late"), ask(None, "nobody")
    assert (first.status, first.body["reason"], first.body["value"]) == (200, "concluded", 1)
    wire.send("PATCH", f"/v1/experiments/{key}/arms/arm-1", {"value": "new"})
    assert ask("ann", "later").body["value"] == "new"
    wire.send("POST", f"/v1/experiments/{key}/archive")
    _again(first, ask("ann", "late"))
    _again(nobody, ask(None, "nobody"))
    _again(drawn, ask("ann", "drawn"))
    for used, unit in (("late", "bob"), ("late", None), ("nobody", "ann"), ("drawn", "bob")):
        _reused(ask(unit, used))


def test_a_key_of_a_draw_and_one_of_no_draw_are_the_same_keys(wire: JsonClient, key: str, ask: Callable[..., Reply]) -> None:
    """In a sticky experiment: a key that drew is not taken for an ask again, nor the other way round."""
    wire.create(key, arms=arms(2), sticky=True)
    drew, again = ask("ann", "drew"), ask("ann", "drew nothing")
    assert (drew.status, again.status) == (201, 200)
    _reused(ask("bob", "drew nothing"))
    _reused(ask("bob", "drew"))
    _again(drew, ask("ann", "drew"))
    _again(again, ask("ann", "drew nothing"))
    bob = ask("bob", "bob's")
    assert (bob.status, bob.body["draw"]) == (201, 2)


def test_a_refused_ask_leaves_no_key(wire: JsonClient, key: str, ask: Callable[..., Reply]) -> None:
    """What was refused may be sent again with the same key, and then has its effect."""
    wire.create(key, arms=arms(2), sticky=True, status="draft")
    assert ask("ann", "early").status == 409
    wire.send("POST", f"/v1/experiments/{key}/start")
    assert ask(None, "early").status == 422
    assert ask("ann", "early").status == 201


LIFE: list[tuple[str, Any]] = [
    ("start", None),
    ("pause", None),
    ("resume", None),
    ("pause", None),
    ("conclude", {"arm": "arm-1"}),
    ("reopen", None),
    ("conclude", {"arm": "arm-0"}),
    ("archive", None),
]


def test_the_step_that_led_here_may_be_taken_again(wire: JsonClient, rows: Rows, key: str) -> None:
    """200 and no event, with a new key, with none, and with the same: which is marked as given before."""
    wire.create(key, arms=arms(2), status="draft")
    for number, (move, body) in enumerate(LIFE):
        path, used = f"/v1/experiments/{key}/{move}", f"step {number}"
        first = wire.send("POST", path, body, Idempotency_Key=used)
        assert (first.status, first.body["version"]) == (200, number + 2)
        for repeated in (wire.send("POST", path, body), wire.send("POST", path, body, Idempotency_Key=f"{used}, again")):
            assert (repeated.status, repeated.body) == (200, first.body)
            assert repeated.headers["Idempotency-Replayed"] is None
        _again(first, wire.send("POST", path, body, Idempotency_Key=used))
    counted = "SELECT count(*) FROM events v JOIN experiments e ON e.id = v.experiment_id WHERE e.key = :key"
    assert rows.query(counted, key=key) == [(len(LIFE) + 1,)]


def test_a_step_s_key_gives_the_first_answer_whatever_came_after(wire: JsonClient, key: str) -> None:
    """A late retry of a pause does not pause an experiment that was resumed."""
    wire.create(key, arms=arms(2))
    path = f"/v1/experiments/{key}"
    first = wire.send("POST", f"{path}/pause", Idempotency_Key="pause")
    wire.send("POST", f"{path}/resume", Idempotency_Key="resume")
    _again(first, wire.send("POST", f"{path}/pause", Idempotency_Key="pause"))
    assert wire.send("GET", path).body["status"] == "running"
    assert wire.send("POST", f"{path}/start").status == 409, "it never was a draft"


def test_concluding_again(wire: JsonClient, key: str) -> None:
    """With the same arm, or with none: 200. With another: 409, and a used key with another arm 422."""
    wire.create(key, arms=arms(2))
    path = f"/v1/experiments/{key}/conclude"
    first = wire.send("POST", path, {"arm": "arm-1"}, Idempotency_Key="end")
    for body in ({"arm": "arm-1"}, None, {}):
        repeated = wire.send("POST", path, body)
        assert (repeated.status, repeated.body) == (200, first.body)
    for other in ("arm-0", "nobody"):
        refused = wire.send("POST", path, {"arm": other})
        assert (refused.status, refused.body["code"]) == (409, "illegal_transition")
    _reused(wire.send("POST", path, {"arm": "arm-0"}, Idempotency_Key="end"))
