"""A user's first walk: create, ask, tell, look."""

from __future__ import annotations

import httpx


def test_create_ask_tell_look(api: httpx.Client, key: str) -> None:
    """A reward told for an assignment shows in the recommendation."""
    created = api.post("/v1/experiments", json={"key": key, "arms": [{"key": "grey"}, {"key": "green"}]})
    assert created.status_code == 201
    assert created.headers["location"] == f"/v1/experiments/{key}"

    asked = api.post(f"/v1/experiments/{key}/assignments", json={"unit": "user-42"})
    assert asked.status_code == 201
    assert (asked.json()["draw"], asked.json()["reason"], asked.json()["arm"]) == (1, "warmup", "grey")

    told = api.post(f"/v1/experiments/{key}/assignments/{asked.json()['id']}/reward", json={"reward": 1})
    assert (told.status_code, told.json()["status"], told.json()["reward"]) == (200, "rewarded", 1)

    look = api.get(f"/v1/experiments/{key}/recommendation")
    assert (look.json()["arm"], look.json()["draws"], look.json()["observations"]) == ("grey", 1, 1)
    again = api.get(f"/v1/experiments/{key}/recommendation", headers={"If-None-Match": look.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
