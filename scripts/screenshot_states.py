"""Experiments in every state that the dashboard shows, with visitors who came in seconds and look as if they had in days."""

from __future__ import annotations

import random
import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scripts.demo import Demo

_FIND_SECONDS = 3
_TOGETHER = 50
_TIMES = {
    "experiments": ("created_at", "as_of"),
    "assignments": ("created_at", "expires_at", "rewarded_at", "due_at"),
    "events": ("at", "expires_at"),
    "snapshots": ("at",),
    "findings": ("at",),
}


@dataclass
class State:
    """An experiment, what its arms are worth, and how long it seems to have run."""

    experiment: dict[str, Any]
    worth: dict[str, float] = field(default_factory=dict)
    visitors: int = 0
    days: float = 12.0
    spread: float | None = None
    """None: visitors convert or not; else rewards vary so much around the arm's worth."""
    pending: int = 0
    """Visitors at the end whose reward has not come yet."""
    slow: bool = False
    """Do the visitors leave time to find out what they show, which is looked for once a second?"""
    moves: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    @property
    def key(self) -> str:
        """Of the experiment."""
        return str(self.experiment["key"])


def _arms(**names: str) -> list[dict[str, Any]]:
    return [{"key": key, "name": name} for key, name in names.items()]


_BANNERS = {f"banner-{number:02}": 0.05 + 0.004 * ((number * 17) % 23) for number in range(40)}
_SEASONS = ("spring morning", "summer evening by the lake", "autumn", "winter night in the mountains with snow")

STATES = [
    State({"key": "landing-page", "name": "Landing page", "arms": _arms(plain="Plain", video="With a video"), "status": "draft"}),
    State(
        {
            "key": "banner-images",
            "name": "Banner images",
            "description": "Forty pictures for the top of the shop.",
            "tags": ["shop", "creative"],
            "owner": "brand@shop.example",
            "control": "banner-00",
            "arms": [
                {"key": key, "name": f"Picture {number + 1}, {_SEASONS[number % 4]}"} for number, key in enumerate(_BANNERS)
            ],
        },
        worth=_BANNERS,
        visitors=9_000,
        days=9,
        pending=120,
    ),
    State(
        {
            "key": "onboarding-tour",
            "name": "Onboarding tour",
            "tags": ["growth"],
            "owner": "growth@shop.example",
            "control": "none",
            "arms": _arms(none="No tour (today)", short="Three steps", long="Nine steps"),
        },
        worth={"none": 0.3, "short": 0.35, "long": 0.3},
        visitors=5,
        days=0.2,
        pending=1,
    ),
    State(
        {
            "key": "pricing-page",
            "name": "Pricing page",
            "description": "Revenue a visitor, in euros.",
            "tags": ["growth", "pricing"],
            "owner": "growth@shop.example",
            "control": "table",
            "reward": {"kind": "bounded", "goal": "maximize", "min": 0, "max": 40},
            "policy": {"kind": "uniform", "seed": 1},
            "arms": _arms(table="Table (today)", cards="Cards", slider="Slider", contact="Contact us only"),
        },
        worth={"table": 11.9, "cards": 12.6, "slider": 12.3, "contact": 8.7},
        visitors=2_400,
        days=6,
        spread=6.0,
        pending=40,
    ),
    State(
        {
            "key": "search-ranking",
            "name": "Search ranking",
            "description": "Seconds until a visitor clicks a result: less is better.",
            "tags": ["search"],
            "owner": "search@shop.example",
            "control": "bm25",
            "reward": {"kind": "bounded", "goal": "minimize", "min": 0, "max": 60},
            "arms": _arms(bm25="Keyword (today)", hybrid="Hybrid", semantic="Semantic"),
        },
        worth={"bm25": 14.0, "hybrid": 11.2, "semantic": 12.6},
        visitors=3_000,
        days=30,
        spread=5.0,
        moves=[("conclude", {"arm": "bm25"})],
    ),
    State(
        {
            "key": "signup-headline",
            "name": "Sign-up headline",
            "tags": ["growth"],
            "owner": "growth@shop.example",
            "control": "start",
            "arms": _arms(start="Start for free (today)", know="Know what works", stop="Stop guessing"),
        },
        worth={"start": 0.18, "know": 0.31, "stop": 0.24},
        visitors=4_800,
        days=16,
        slow=True,
        pending=60,
    ),
    State(
        {
            "key": "checkout-button",
            "name": "Checkout button",
            "description": "Which colour of the button makes more visitors finish their order?",
            "tags": ["checkout", "shop"],
            "owner": "growth@shop.example",
            "control": "grey",
            "arms": [
                {"key": "grey", "name": "Grey (today)", "value": {"color": "#8a8f93"}, "min_share": 0.05},
                {"key": "green", "name": "Green", "value": {"color": "#0b7268"}},
                {"key": "orange", "name": "Orange", "value": {"color": "#c86414"}},
                {"key": "outline", "name": "Outline", "value": {"color": "transparent"}},
            ],
        },
        worth={"grey": 0.10, "green": 0.165, "orange": 0.125, "outline": 0.07},
        visitors=2_000,
        days=8,
        pending=50,
    ),
]


def fill(address: str) -> None:
    """Create the experiments, let their visitors come, and wait until what they show has been found."""
    api = Demo(address)
    for state in STATES:
        chance = random.Random(state.key)  # noqa: S311 - visitors, not secrets
        policy = {"policy": {"kind": "auto", "seed": 1}} | state.experiment
        api.call("POST", "/v1/experiments", policy)
        together = max(_TOGETHER, state.visitors // 60)
        for number, before in enumerate(range(0, state.visitors, together)):
            _visit(api, state, min(together, state.visitors - before), chance)
            if state.slow and number % 8 == 0:
                time.sleep(1.1)
        if state.pending:
            api.call("POST", f"/v1/experiments/{state.key}/assignments/batch", {"count": state.pending})
    time.sleep(_FIND_SECONDS)
    for state in STATES:
        for move, body in state.moves:
            api.call("POST", f"/v1/experiments/{state.key}/{move}", body)


def _visit(api: Demo, state: State, visitors: int, chance: random.Random) -> None:
    where = f"/v1/experiments/{state.key}"
    asked = api.call("POST", f"{where}/assignments/batch", {"count": visitors})["assignments"]
    told = [{"assignment": one["id"], "reward": _reward(state, one["arm"], chance)} for one in asked]
    api.call("POST", f"{where}/rewards", {"rewards": told})


def _reward(state: State, arm: str, chance: random.Random) -> float:
    if state.spread is None:
        return float(chance.random() < state.worth[arm])
    return min(max(chance.gauss(state.worth[arm], state.spread), 0.0), float(state.experiment["reward"]["max"]))


def stretch(database: Path) -> None:
    """Move all times apart, so that each experiment seems to have run for its days. The service must not run meanwhile."""
    now = time.time_ns() // 1_000
    with closing(sqlite3.connect(database)) as connection, connection:
        for state in STATES:
            found = connection.execute("SELECT id, created_at, as_of FROM experiments WHERE key = ?", [state.key]).fetchone()
            identity, began, ended = found
            values = {"id": identity, "now": now, "ended": ended, "factor": state.days * 86_400e6 / max(ended - began, 1)}
            for table, columns in _TIMES.items():
                name = "id" if table == "experiments" else "experiment_id"
                moved = ", ".join(f"{column} = :now - CAST((:ended - {column}) * :factor AS INTEGER)" for column in columns)
                connection.execute(f"UPDATE {table} SET {moved} WHERE {name} = :id", values)  # noqa: S608 - names of our own
