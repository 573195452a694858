"""Plays an experiment through the production policies of service/policy, one draw at a time: what the compiled ones must equal.

The same random stream gives the same rewards (the compiled code calls the same generator), so the arms can be compared
draw by draw.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from service.domain import PolicySpec
from service.policy.almost_tracking import AlmostTracking
from service.policy.base import Bools, Evidence, Floats, Ints
from service.policy.registry import make_policy
from service.simulation.environments import Environment
from service.simulation.kernels.catalogue import Contender, contender
from service.simulation.runner import stream, world_of


@dataclass(slots=True)
class _Tally:
    """Counts and sums as plain floats, as the compiled code keeps them."""

    draws: Ints
    observed: Ints
    sums: Floats
    waiting: dict[int, list[tuple[int, float]]] = field(default_factory=dict)

    def evidence(self) -> Evidence:
        """What the policy is shown."""
        undrawn: Bools = self.draws == 0
        with np.errstate(invalid="ignore"):
            means = self.sums / self.observed
        return Evidence(means, self.draws.copy(), undrawn, np.zeros(len(self.draws)))

    def receive(self, time: int) -> None:
        """Take in the rewards that come after draw number `time`; the latest sent first, as the compiled lists do."""
        for arm, reward in reversed(self.waiting.pop(time, [])):
            self.observed[arm] += 1
            self.sums[arm] += reward


def policy_of(chosen: Contender, seed: int) -> PolicySpec:
    """The live settings that a simulated tracking policy stands for."""
    options = chosen.options
    return PolicySpec(
        kind="simple_tracking" if chosen.name.startswith("simple") else "almost_tracking",
        seed=seed,
        sharpness=options.get("s", 1.0),
        batch_size=int(options["n"]) if "n" in options else None,
        sufficiency=options.get("c", 0.999),
        sufficiency_by="realised" if "realised" in options else "planned",
        guard=options.get("guard", 0.0),
        ties="limit" if options.get("ties", 1.0) else "paper",
    )


def play_production(environment: Environment, policy: str, draws: int, rng: np.random.Generator, seed: int) -> Ints:
    """The arms that the production policy draws (fixed delay only)."""
    chosen = make_policy(policy_of(contender(policy), seed))
    tally = _Tally(np.zeros(environment.arms, np.int64), np.zeros(environment.arms, np.int64), np.zeros(environment.arms))
    plan = None
    arms = np.zeros(draws, np.int64)
    for time in range(draws):
        evidence = tally.evidence()
        choice, plan = chosen.choose(evidence, lambda known=evidence: chosen.targets(known), plan)  # type: ignore[misc]
        arms[time] = choice.index
        tally.draws[choice.index] += 1
        if environment.loss == 0.0 or rng.random() >= environment.loss:
            reward = _reward(environment, choice.index, rng)
            tally.waiting.setdefault(time + environment.delay, []).append((choice.index, reward))
        tally.receive(time)
    return arms


def _reward(environment: Environment, arm: int, rng: np.random.Generator) -> float:
    """One reward, from the generator's calls in the compiled code's order."""
    mean = environment.means[arm]
    if environment.kind == "gaussian":
        return float(mean + rng.standard_normal())
    if environment.kind == "bernoulli":
        return 1.0 if rng.random() < mean else 0.0
    return float(mean + (2.0 * rng.random() - 1.0) * min(mean, 1.0 - mean))


def play_compiled(environment: Environment, policy: str, draws: int, rng: np.random.Generator, seed: int) -> Ints:
    """The arms that the compiled policy draws; the batches' remainders with the uniforms that production would use."""
    chosen = contender(policy)
    parameters = chosen.parameters(environment.arms)
    if chosen.name.startswith("almost"):
        parameters = (*parameters[:-1], _remainder_uniforms(chosen, environment.arms, draws, seed))
    trace = np.zeros(draws, np.int64)
    checkpoints, picks = np.array([draws], np.int64), np.zeros(1, np.int64)
    world = world_of(environment, traced=True)
    chosen.play()(environment.array(), world, draws, checkpoints, picks, trace, rng, *parameters)
    return trace


def _remainder_uniforms(chosen: Contender, arms: int, draws: int, seed: int) -> Floats:
    """Row b: the uniforms behind the one `rng.choice` of batch b + 1 in service/policy."""
    policy = make_policy(policy_of(chosen, seed))
    assert isinstance(policy, AlmostTracking)  # noqa: S101 - for the type checker
    size = max(policy.batch_size or 0, 2 * arms)
    batches = draws // size + 1
    return np.stack([np.random.default_rng([seed, batch]).random(size) for batch in range(1, batches + 1)])


def first_difference(environment: Environment, policy: str, draws: int, seed: int, against: str | None = None) -> int | None:
    """The first draw in which production and the compiled code (of `against`, if given) part, or None."""
    key = f"equality|{environment.label}|{policy}"
    production = play_production(environment, policy, draws, stream(seed, key, 0), seed)
    fast = play_compiled(environment, against or policy, draws, stream(seed, key, 0), seed)
    differing = np.flatnonzero(production != fast)
    return int(differing[0]) if len(differing) else None
