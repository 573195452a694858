"""The audit log speaks the contract's words: what it shows can be sent back, and what it names can be looked up."""

from __future__ import annotations

from datetime import datetime

from testing.json_client import JsonClient


def test_every_entry_is_in_the_contract_s_words(wire: JsonClient, key: str) -> None:
    """Keys for arms, min and max, policies with their own parameters, ISO times, ids of assignments."""
    path = f"/v1/experiments/{key}"
    sent = {
        "arms": [{"key": "a", "value": 1}, {"key": "b", "min_share": 0.5}],
        "reward": {"kind": "bounded", "goal": "minimize", "min": -1.0, "max": 4.0},
        "policy": {"kind": "uniform", "seed": 5},
        "tags": ["t"],
        "owner": "ann",
        "status": "draft",
    }
    created = wire.create(key, **sent)
    wire.send("PATCH", path, {"reward": {"kind": "real"}, "policy": {"kind": "simple_tracking", "seed": 6}})
    wire.send("POST", f"{path}/start")
    wire.send("POST", f"{path}/arms", {"key": "c"})
    wire.send("PATCH", f"{path}/arms/a", {"min_share": 0.25})
    asked = wire.ask(key)
    wire.tell(key, asked["id"], 2)
    wire.send("PUT", f"{path}/assignments/{asked['id']}/reward", {"reward": 3})
    wire.send("DELETE", f"{path}/assignments/{asked['id']}/reward")
    wire.send("POST", f"{path}/observations", {"observations": [{"arm": "b", "reward": 1, "id": "one"}]})
    wire.send("PUT", f"{path}/observations/one", {"reward": 2})
    wire.send("DELETE", f"{path}/observations/one")
    wire.send("POST", f"{path}/conclude", {"arm": "b"})
    log = wire.send("GET", f"{path}/events").body["events"][::-1]
    assert [event["kind"] for event in log] == [
        *("created", "patch", "lifecycle", "arm_added", "arm_changed", "correction", "void"),
        *("observation_edit", "observation_void", "lifecycle"),
    ]
    begun, patched, started, added, changed, corrected, voided, edited, dropped, concluded = (event["details"] for event in log)
    assert begun["arms"] == created["arms"]
    assert begun["experiment"] == {name: created[name] for name in created if name not in ("arms", "pruned_at", "version")}
    assert patched["before"] == {name: created[name] for name in ("policy", "reward")}
    assert patched["after"]["reward"] == {"kind": "real", "goal": "maximize"}
    assert wire.send("GET", path).body["policy"] == patched["after"]["policy"]
    assert started == {"move": "start", "by": "request", "before": {"status": "draft"}, "after": {"status": "running"}}
    assert added == {"arm": {"key": "c", "name": "c", "value": None, "min_share": 0.0, "status": "active"}}
    assert changed == {"before": {"min_share": 0.0}, "after": {"min_share": 0.25}}
    assert corrected == {"before": {"status": "rewarded", "reward": 2}, "after": {"status": "rewarded", "reward": 3}}
    assert voided["after"] == {"status": "voided", "reward": None}
    assert (edited["observation"], edited["before"]["reward"], edited["after"]["reward"]) == ("one", 1, 2)
    assert (dropped["observation"], dropped["after"]["status"]) == ("one", "voided")
    assert (concluded["before"]["concluded_arm"], concluded["after"]["concluded_arm"]) == (None, "b")
    assert [event["arm"] for event in log] == [None, None, None, "c", "a", asked["arm"], asked["arm"], "b", "b", None]
    for event in log:
        assert datetime.fromisoformat(event["at"]).tzinfo is not None
        about = event["kind"] in ("correction", "void")
        assert (event["assignment"], event["draw"]) == ((asked["id"], 1) if about else (None, None))
    assert wire.send("GET", f"{path}/assignments/{log[5]['assignment']}").body["draw"] == 1


def test_the_log_is_read_by_kinds(wire: JsonClient, key: str) -> None:
    """Some kinds alone, page by page; a kind that no log has is refused by its name."""
    path = f"/v1/experiments/{key}"
    wire.create(key, arms=[{"key": "a"}, {"key": "b"}], status="draft")
    for name in ("one", "two", "three"):
        wire.send("PATCH", path, {"name": name})
    wire.send("POST", f"{path}/start")
    chosen = wire.send("GET", f"{path}/events?kind=patch,created&page_size=3").body
    assert [event["kind"] for event in chosen["events"]] == ["patch", "patch", "patch"]
    rest = wire.send("GET", f"{path}/events?kind=patch,created&page_size=3&page_token={chosen['next_page_token']}").body
    assert ([event["kind"] for event in rest["events"]], rest["next_page_token"]) == (["created"], None)
    refused = wire.send("GET", f"{path}/events?kind=patch,reward")
    assert (refused.status, refused.body["errors"][0]["pointer"]) == (422, "/query/kind")
    assert "reward" in refused.body["errors"][0]["detail"]
