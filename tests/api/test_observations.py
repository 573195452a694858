"""Observations can be read, corrected and voided by their ids: exactly, once, and on the record."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from testing.json_client import JsonClient


@pytest.fixture
def told(wire: JsonClient, key: str) -> str:
    """The path of an experiment with four observations of two arms."""
    wire.create(key, arms=[{"key": "a"}, {"key": "b"}], reward={"kind": "real"})
    path = f"/v1/experiments/{key}"
    for item in (("a", 0.1, "one"), ("a", 0.2, None), ("b", 0.3, "two"), ("a", 1e100, "three")):
        sent = {"arm": item[0], "reward": item[1]} | ({} if item[2] is None else {"id": item[2]})
        assert wire.send("POST", f"{path}/observations", {"observations": [sent]}).body["results"][0]["status"] == "recorded"
    return path


def _arm(wire: JsonClient, path: str, place: int = 0) -> dict[str, Any]:
    standing: dict[str, Any] = wire.send("GET", f"{path}/recommendation").body["arms"][place]
    return {name: standing[name] for name in ("draws", "observations", "mean", "variance")}


def test_they_are_read(wire: JsonClient, told: str) -> None:
    """Newest first, with an id or without, by pages, by arm and by time; one by its id."""
    page = wire.send("GET", f"{told}/observations").body
    shown = [(one["id"], one["arm"], one["reward"], one["status"]) for one in page["observations"]]
    assert shown == [
        ("three", "a", 1e100, "rewarded"),
        ("two", "b", 0.3, "rewarded"),
        (None, "a", 0.2, "rewarded"),
        ("one", "a", 0.1, "rewarded"),
    ]
    assert page["next_page_token"] is None
    first = wire.send("GET", f"{told}/observations?page_size=3").body
    rest = wire.send("GET", f"{told}/observations?page_size=3&page_token={first['next_page_token']}").body
    assert first["observations"] + rest["observations"] == page["observations"]
    assert [one["id"] for one in wire.send("GET", f"{told}/observations?arm=b").body["observations"]] == ["two"]
    since = page["observations"][1]["observed_at"]
    assert [one["id"] for one in wire.send("GET", f"{told}/observations?since={since}").body["observations"]] == ["three", "two"]
    assert wire.send("GET", f"{told}/observations/two").body == page["observations"][1]
    assert wire.send("GET", f"{told}/observations?arm=nobody").body["code"] == "arm_not_found"


def test_a_correction_is_exact(wire: JsonClient, told: str) -> None:
    """A huge reward comes and goes without a trace in the sums; the same again changes nothing."""
    corrected = wire.send("PUT", f"{told}/observations/three", {"reward": 0.6})
    assert (corrected.status, corrected.body["reward"], corrected.body["status"]) == (200, 0.6, "rewarded")
    assert _arm(wire, told)["mean"] == 0.3, "(0.1 + 0.2 + 0.6) / 3, rounded once"
    version = wire.send("GET", told).body["version"]
    assert wire.send("PUT", f"{told}/observations/three", {"reward": 0.6}).body == corrected.body
    assert wire.send("GET", told).body["version"] == version
    assert wire.send("GET", f"{told}/observations/three").body == corrected.body


def test_a_void_and_the_way_back(wire: JsonClient, told: str) -> None:
    """It leaves draws and observations, as if it had not been; a PUT brings it back, a POST does not."""
    before = _arm(wire, told, 1)
    voided = wire.send("DELETE", f"{told}/observations/two")
    assert (voided.status, voided.body["status"], voided.body["reward"]) == (200, "voided", None)
    assert wire.send("DELETE", f"{told}/observations/two").body == voided.body
    assert _arm(wire, told, 1) == {"draws": 0, "observations": 0, "mean": None, "variance": None}
    again = {"observations": [{"arm": "b", "reward": 0.3, "id": "two"}]}
    assert wire.send("POST", f"{told}/observations", again).body["results"][0]["status"] == "conflict"
    assert wire.send("PUT", f"{told}/observations/two", {"reward": 0.3}).body["status"] == "rewarded"
    assert _arm(wire, told, 1) == before
    assert wire.send("POST", f"{told}/observations", again).body["results"][0]["status"] == "duplicate"


@pytest.mark.parametrize("name", ["with/a/slash", "50% & more?", "Größe ☕", "..", "line\nbreak", "x" * 255])
def test_any_id_can_be_named(wire: JsonClient, told: str, name: str) -> None:
    """As long as it was told with."""
    wire.send("POST", f"{told}/observations", {"observations": [{"arm": "a", "reward": 1, "id": name}]})
    where = f"{told}/observations/{quote(name, safe='').replace('.', '%2E')}"
    assert wire.send("PUT", where, {"reward": 2}).body["id"] == name
    assert wire.send("DELETE", where).body["status"] == "voided"


def test_what_cannot_be_changed(wire: JsonClient, told: str) -> None:
    """An unknown one is 404, a reward that is none 422, an archived experiment 409."""
    for name in ("nobody", "%00", "x" * 256, "one%00"):
        for method, body in (("GET", None), ("PUT", {"reward": 1}), ("DELETE", None)):
            refused = wire.send(method, f"{told}/observations/{name}", body)
            assert (refused.status, refused.body["code"]) == (404, "observation_not_found")
    assert wire.send("PUT", f"{told}/observations/one", {"reward": 1e101}).status == 422
    assert wire.send("PUT", f"{told}/observations/one", {}).status == 422
    wire.send("POST", f"{told}/conclude", {"arm": "a"})
    assert wire.send("PUT", f"{told}/observations/one", {"reward": 1}).status == 200, "late news still counts"
    wire.send("POST", f"{told}/archive")
    for method, body in (("PUT", {"reward": 2}), ("DELETE", None)):
        refused = wire.send(method, f"{told}/observations/one", body)
        assert (refused.status, refused.body["code"]) == (409, "experiment_not_running")


def test_the_recommendation_says_how_much_was_imported(wire: JsonClient, told: str) -> None:
    """Observations with an id and without, less what was voided and more what came back; rewards of asks are none."""

    def look() -> tuple[int, int, str]:
        found = wire.send("GET", f"{told}/recommendation").body
        return found["imported"], found["observations"], found["summary"]

    asked = wire.ask(told.rpartition("/")[2])
    wire.tell(told.rpartition("/")[2], asked["id"], 0.5)
    assert look()[:2] == (4, 5)
    assert "4 of the 5 rewards were imported (told without an ask)." in look()[2]
    assert wire.send("DELETE", f"{told}/observations/one").status == wire.send("DELETE", f"{told}/observations/one").status == 200
    assert look()[:2] == (3, 4)
    assert wire.send("PUT", f"{told}/observations/one", {"reward": 0.5}).status == 200
    assert wire.send("PUT", f"{told}/observations/two", {"reward": 0.5}).status == 200
    assert look()[:2] == (4, 5)
