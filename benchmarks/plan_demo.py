"""The experiments of `make demo` as prospects, and experiments of any policy played by the service's own policy objects.

The demo's visitors come in ticks; a reward is told some ticks after its draw, which is so many draws. The waiting time that an
expiry gives silence is so many draws, too.
"""

from __future__ import annotations

import numpy as np

from benchmarks.plan_reference import Ends, looked
from scripts.demo import CROWDS, Crowd
from scripts.demo import TICK_SECONDS as TICK
from service.domain import Expiry, PolicySpec, RewardSpec
from service.inference.samples import Samples
from service.policy.automatic import AutomaticPolicy
from service.policy.base import Evidence
from service.policy.registry import make_policy
from service.simulation.prospect import Prospect

_LOOKS = 1.01


def demo_prospects() -> dict[str, Prospect]:
    """By the experiment's key."""
    return {f"demo: {crowd.experiment['key']}": _prospect(crowd) for crowd in CROWDS}


def _prospect(crowd: Crowd) -> Prospect:
    settings = crowd.experiment
    given = settings.get("reward", {})
    reward = RewardSpec(given.get("kind", "binary"), given.get("goal", "maximize"), given.get("min"), given.get("max"))
    arms = settings["arms"]
    kind = settings.get("policy", {}).get("kind", "auto")
    automatic = AutomaticPolicy(0).resolved(reward.kind, len(arms))
    expiry = None if settings.get("expiry") is None else Expiry(**settings["expiry"])
    return Prospect(
        reward=reward,
        policy=automatic if kind == "auto" else PolicySpec(kind, ties="limit", keeps_floors=True),
        means=tuple(crowd.worth[arm["key"]] for arm in arms),
        deviation=crowd.spread or 0.0,
        floors=tuple(arm.get("min_share", 0.0) for arm in arms),
        delay=crowd.visitors * crowd.late,
        window=None if expiry is None else round(expiry.after_seconds / TICK * crowd.visitors),
        silence=None if expiry is None else expiry.reward,
    )


def play_served(prospect: Prospect, runs: int, most: int, seed: int) -> Ends:
    """Each run by the policy object that the service would make."""
    ends = Ends(np.full(runs, np.inf), np.full(runs, np.inf))
    for run in range(runs):
        ends.separated[run] = ends.decided[run] = _separated_at(prospect, most, np.random.default_rng([seed, run]))
    return ends


def _separated_at(prospect: Prospect, most: int, rng: np.random.Generator) -> float:
    arms, sign = len(prospect.means), prospect.reward.sign
    policy, plan = make_policy(prospect.policy, has_floors=any(prospect.floors)), None
    floors, truth = np.array(prospect.floors), np.array(prospect.means)
    lag = max(prospect.delay, prospect.window or 0)
    draws, told, counts = (np.zeros(arms, np.int64) for _ in range(3))
    sums, squares, told_sums = (np.zeros(arms) for _ in range(3))
    history: list[tuple[int, float]] = []
    out, look = np.zeros((1, arms), np.bool_), 4 * arms
    while len(history) < most:
        with np.errstate(divide="ignore", invalid="ignore"):
            silent = 0.0 if prospect.silence is None else prospect.silence * (draws - told)
            means = (told_sums + silent) / (told if prospect.silence is None else draws)
        evidence = Evidence(sign * means, draws, draws == 0, floors)
        choice, plan = policy.choose(evidence, lambda known=evidence: policy.targets(known), plan)  # type: ignore[misc]
        arm = choice.index
        history.append((arm, _reward(prospect, truth[arm], rng)))
        draws[arm] += 1
        if len(history) > prospect.delay:
            arm, reward = history[-1 - prospect.delay]
            told[arm] += 1
            told_sums[arm] += reward
        if len(history) > lag:
            arm, reward = history[-1 - lag]
            counts[arm], sums[arm], squares[arm] = counts[arm] + 1, sums[arm] + reward, squares[arm] + reward * reward
        if len(history) >= look:
            look = max(look + 1, int(look * _LOOKS))
            some = np.maximum(counts, 1)
            samples = Samples(
                counts[None].astype(np.float64), (sums / some)[None], np.maximum(squares - sums * sums / some, 0.0)[None]
            )
            out, _ = looked(prospect, samples, out)
            if out.sum() >= arms - 1:
                return float(len(history))
    return np.inf


def _reward(prospect: Prospect, mean: float, rng: np.random.Generator) -> float:
    """As the demo's visitors give it."""
    if prospect.reward.kind == "binary":
        return float(rng.random() < mean)
    return max(0.0, rng.normal(mean, prospect.deviation))
