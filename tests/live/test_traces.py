"""Delayed traffic over HTTP, arm for arm: the service draws what an in-memory loop draws from the same rewards."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from testing.json_client import JsonClient
from testing.server import Server
from tests.live.model import Model, ModelArm, Settings

_TRACES = 20
_DRAWS = 60


@dataclass
class Trace:
    """One experiment: who is told when."""

    number: int
    settings: Settings
    arms: int
    rates: list[float]
    waiting: dict[int, list[tuple[int, str, float]]] = field(default_factory=dict)


def trace(number: int) -> Trace:
    """A trace of any policy, with rewards that are late or lost."""
    rng = np.random.default_rng([20, number])
    arms = int(rng.integers(2, 7))
    policies: list[Any] = ["simple_tracking", "almost_tracking", "simple_tracking", "uniform"]
    sufficiency: list[Any] = ["planned", "realised"]
    settings = Settings(
        policy=policies[number % 4],
        sufficiency_by=sufficiency[number // 4 % 2],
        seed=number,
        reward="real" if number % 3 == 0 else "binary",
        minimize=number % 5 == 0,
        expiry=(3600.0, 0.0) if number % 2 else None,
        ties="limit" if number % 7 < 4 else "paper",
    )
    return Trace(number, settings, arms, list(rng.random(arms)))


def play(client: JsonClient, key: str, played: Trace) -> None:
    """Ask and tell over HTTP and in the model, side by side."""
    rng = np.random.default_rng([21, played.number])
    settings = played.settings
    names = [f"arm-{number}" for number in range(played.arms)]
    policy: dict[str, Any] = {"kind": settings.policy, "seed": settings.seed}
    if settings.policy != "uniform":
        policy["ties"] = settings.ties
    if settings.policy == "almost_tracking":
        policy["sufficiency_by"] = settings.sufficiency_by
    client.create(
        key,
        arms=[{"key": name} for name in names],
        policy=policy,
        reward={"kind": settings.reward, "goal": "minimize" if settings.minimize else "maximize"},
        expiry={"after_seconds": settings.expiry[0], "reward": settings.expiry[1]} if settings.expiry else None,
    )
    model = Model(settings, [ModelArm(name) for name in names])
    for ask in range(_DRAWS):
        for index, assignment, reward in played.waiting.pop(ask, []):
            client.tell(key, assignment, reward)
            model.tell(model.draws[index], reward, correct=False)
        answer = client.ask(key)
        reason, arm, number = model.ask(None, None, 0)
        assert (answer["reason"], answer["arm"], answer["draw"]) == (reason, names[arm], number), (played.number, ask)
        luck, late, lost = rng.random(), int(rng.integers(0, 25)), rng.random() < 0.3
        reward = float(rng.normal(played.rates[arm])) if settings.reward == "real" else float(luck < played.rates[arm])
        if not lost:
            played.waiting.setdefault(ask + 1 + late, []).append((ask, answer["id"], reward))
    seen = client.send("GET", f"/v1/experiments/{key}/recommendation").body
    ranked = model.ranking()
    assert seen["arm"] == (names[ranked[0]] if ranked else None)
    assert [shown["mean"] for shown in seen["arms"]] == [model.standing(arm).mean for arm in range(played.arms)]
    assert [shown["target_share"] for shown in seen["arms"]] == pytest.approx(list(model.targets().values()), abs=1e-11)


def test_twenty_delayed_traces_are_drawn_arm_for_arm(live: Server, key: str) -> None:
    """Rewards up to 24 asks late, 30% lost, all policies, both directions: every arm, reason and number alike."""

    def play_one(number: int) -> None:
        with JsonClient(live.url) as client:
            play(client, f"{key}-{number}", trace(number))

    with ThreadPoolExecutor(_TRACES) as threads:
        assert list(threads.map(play_one, range(_TRACES))) == [None] * _TRACES
