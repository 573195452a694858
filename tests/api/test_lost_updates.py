"""ETag and If-Match: nobody overwrites what somebody else has changed meanwhile."""

from __future__ import annotations

from testing.json_client import JsonClient, Reply, arms


def _conflict(reply: Reply) -> None:
    assert (reply.status, reply.body["code"]) == (412, "version_conflict")


def test_a_patch_on_what_was_read(wire: JsonClient, experiment: str) -> None:
    """It takes effect on the state that was read; the second of two that read the same is 412 and changes nothing."""
    path = f"/v1/experiments/{experiment}"
    etag = wire.send("GET", path).headers["ETag"]
    assert etag.startswith('"')
    mine = wire.send("PATCH", path, {"name": "mine"}, If_Match=etag)
    assert mine.status == 200
    _conflict(wire.send("PATCH", path, {"name": "theirs"}, If_Match=etag))
    read = wire.send("GET", path)
    assert (read.body["name"], read.headers["ETag"]) == ("mine", mine.headers["ETag"])
    assert wire.send("PATCH", path, {"name": "next"}, If_Match=f'"other", {mine.headers["ETag"]}').status == 200
    assert wire.send("PATCH", path, {"name": "any"}, If_Match="*").status == 200
    assert wire.send("PATCH", path, {"name": "without"}).status == 200
    _conflict(wire.send("PATCH", path, {"name": "never"}, If_Match="W/" + wire.send("GET", path).headers["ETag"]))
    assert wire.send("PATCH", "/v1/experiments/nobody", {"name": "x"}, If_Match="*").status == 404


def test_traffic_is_no_change_of_settings(wire: JsonClient, experiment: str) -> None:
    """Asks and rewards move the version, but not the ETag; a step, a patch and an arm's change do."""
    path = f"/v1/experiments/{experiment}"
    before = wire.send("GET", path)
    wire.tell(experiment, wire.ask(experiment)["id"], 1)
    after = wire.send("GET", path)
    assert after.body["version"] > before.body["version"]
    assert after.headers["ETag"] == before.headers["ETag"]
    seen = {after.headers["ETag"]}
    for change in (
        ("POST", f"{path}/pause", None),
        ("PATCH", path, {"tags": ["a"]}),
        ("PATCH", f"{path}/arms/arm-0", {"value": 7}),
        ("POST", f"{path}/arms", {"key": "third"}),
    ):
        assert wire.send(*change).status in (200, 201)
        seen.add(wire.send("GET", path).headers["ETag"])
    assert len(seen) == 5


def test_an_arm_has_an_etag_of_its_own(wire: JsonClient, experiment: str) -> None:
    """A change of another arm is no conflict for it; with the experiment's ETag, any change is one."""
    path = f"/v1/experiments/{experiment}"
    whole, own = wire.send("GET", path).headers["ETag"], wire.send("GET", f"{path}/arms/arm-0")
    assert own.body == {"key": "arm-0", "name": "arm-0", "value": 0, "min_share": 0.0, "status": "active"}
    assert wire.send("PATCH", f"{path}/arms/arm-1", {"name": "B"}, If_Match=whole).status == 200
    _conflict(wire.send("PATCH", f"{path}/arms/arm-0", {"name": "A"}, If_Match=whole))
    changed = wire.send("PATCH", f"{path}/arms/arm-0", {"name": "A"}, If_Match=own.headers["ETag"])
    assert changed.status == 200
    _conflict(wire.send("PATCH", f"{path}/arms/arm-0", {"name": "again"}, If_Match=own.headers["ETag"]))
    assert wire.send("GET", f"{path}/arms/arm-0").headers["ETag"] == changed.headers["ETag"]
    assert wire.send("GET", f"{path}/arms/nobody").body["code"] == "arm_not_found"


def test_every_answer_with_the_whole_has_its_etag(wire: JsonClient, key: str) -> None:
    """Creation, a step, a patch, a duplicate, a new arm: the ETag that the next read shows, and that a change may name."""
    path = f"/v1/experiments/{key}"
    made = wire.send("POST", "/v1/experiments", {"key": key, "arms": arms(2), "status": "draft"})
    assert made.headers["ETag"] == wire.send("GET", path).headers["ETag"]
    for step in ("start", "pause", "resume"):
        moved = wire.send("POST", f"{path}/{step}", Idempotency_Key=step)
        assert moved.headers["ETag"] == wire.send("GET", path).headers["ETag"]
        again = wire.send("POST", f"{path}/{step}", Idempotency_Key=step)
        assert again.headers["ETag"] == moved.headers["ETag"]
    patched = wire.send("PATCH", path, {"owner": "ann"}, If_Match=moved.headers["ETag"])
    assert (patched.status, patched.headers["ETag"]) == (200, wire.send("GET", path).headers["ETag"])
    twin = wire.send("POST", f"{path}/duplicate", {"key": f"{key}-twin"})
    assert twin.headers["ETag"] == wire.send("GET", f"{path}-twin").headers["ETag"]
    added = wire.send("POST", f"{path}/arms", {"key": "third"})
    assert added.headers["ETag"] == wire.send("GET", f"{path}/arms/third").headers["ETag"]


def test_only_what_was_seen_is_deleted(wire: JsonClient, key: str) -> None:
    """412 where somebody has changed it since; then it is there still, and what is read again can be deleted."""
    path = f"/v1/experiments/{key}"
    wire.create(key, arms=arms(2), status="draft")
    seen = wire.send("GET", path).headers["ETag"]
    wire.send("PATCH", path, {"name": "of somebody else"})
    _conflict(wire.send("DELETE", f"{path}?confirm={key}", If_Match=seen))
    now = wire.send("GET", path)
    assert now.status == 200
    assert wire.send("DELETE", f"{path}?confirm={key}", If_Match=now.headers["ETag"]).status == 204
    assert wire.send("DELETE", f"{path}?confirm={key}", If_Match="*").status == 404
