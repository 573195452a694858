"""Visitors for the tests: they ask and tell as a product's backend would."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import httpx


def create(http: httpx.Client, key: str, **settings: Any) -> dict[str, Any]:  # noqa: ANN401 - any setting
    """An experiment with two arms, unless told otherwise."""
    body = {"key": key, "arms": [{"key": "control"}, {"key": "variant"}], "policy": {"seed": 7}} | settings
    answer = http.post("/v1/experiments", json=body)
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def visit(http: httpx.Client, key: str, worth: Mapping[str, float], visitors: int = 40, seed: int = 1) -> None:
    """So many visitors come and convert as often as their arm is worth."""
    chance = random.Random(seed)  # noqa: S311 - visitors, not secrets
    asked = http.post(f"/v1/experiments/{key}/assignments/batch", json={"count": visitors}).json()["assignments"]
    told = [{"assignment": one["id"], "reward": int(chance.random() < worth[one["arm"]])} for one in asked]
    answer = http.post(f"/v1/experiments/{key}/rewards", json={"rewards": told})
    assert {one["status"] for one in answer.json()["results"]} == {"recorded"}
