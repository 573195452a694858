"""Visitors for the tests: they ask and tell as a product's backend would."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
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


def backdate(database: Path, key: str, days: int) -> None:
    """Let an experiment have begun so many days ago, its draws with it: its rate of traffic becomes a modest one."""
    with closing(sqlite3.connect(database, timeout=30)) as connection, connection:
        moved = {"back": days * 86_400_000_000, "key": key}
        connection.execute("UPDATE experiments SET created_at = created_at - :back WHERE key = :key", moved)
        own = "(SELECT id FROM experiments WHERE key = :key)"
        connection.execute(f"UPDATE snapshots SET at = at - :back WHERE experiment_id = {own}", moved)
        connection.execute(f"UPDATE assignments SET created_at = created_at - :back WHERE experiment_id = {own}", moved)
