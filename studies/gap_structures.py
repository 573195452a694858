"""The environments of the study of guarded weights: named ways in which the other arms lie below the best one.

Gaps are scaled to a given H1 in units of the best arm's deviation, so that environments of a size are about equally hard. Rates
far below one half leave room for small gaps only and are harder by a factor. The best arm stands at a random
position, because ties of binary rewards go to the lowest one.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from service.simulation.environments import Environment, of_means

if TYPE_CHECKING:
    from service.policy.base import Floats
    from service.simulation.environments import Kind

Structure: TypeAlias = Literal["equal", "linear", "geometric", "one-good", "many-equal", "random"]
STRUCTURES: tuple[Structure, ...] = ("equal", "linear", "geometric", "one-good", "many-equal", "random")
DELAY = 500
_SEED = 2027
_HARDNESS = {2: 20.0, 3: 30.0, 5: 40.0, 10: 60.0, 40: 120.0, 200: 300.0, 1000: 1000.0}
# By the best arm's rate: how many times harder.
_HARDER = {0.5: 1.0, 0.1: 4.0, 0.02: 16.0, 0.01: 32.0}
_BOUNDED_DEVIATION = 1.0 / 12.0**0.5
_LEAST_OF_BEST = 0.1


def gaps_of(structure: Structure, others: int, rng: np.random.Generator) -> Floats:
    """The gaps of the other arms, in any unit."""
    steps = np.arange(1, others + 1)
    near = np.where(steps <= max(1, others // 2), 1.0, 3.0)
    shapes = {
        "equal": np.ones(others),
        "linear": steps / others,
        "geometric": 10.0 ** (steps / others),
        "one-good": np.where(steps == 1, 1.0, 4.0),
        "many-equal": near,
        "random": np.maximum(rng.random(others), 0.02),
    }
    return shapes[structure]


def environment(
    kind: Kind, arms: int, structure: Structure, rate: float = 0.5, delay: int = 0, *, draw: int | None = None
) -> Environment:
    """The environment by its description; `rate` is the best arm's mean of binary rewards.

    With a `draw` its random gaps and positions are others, and its own.
    """
    drawn = "" if draw is None else f" draw={draw}"
    text = f"{kind} {arms} {structure} {rate:g}{drawn}"
    rng = np.random.default_rng([_SEED, zlib.crc32(text.encode())])
    gaps = gaps_of(structure, arms - 1, rng)
    gaps = gaps * np.sqrt((1.0 / gaps**2).sum() / (_HARDNESS[arms] * _HARDER[rate]))
    means = np.concatenate([[0.0], -gaps])
    if kind == "bernoulli":
        means = np.maximum(_LEAST_OF_BEST * rate, rate + means * (rate * (1.0 - rate)) ** 0.5)
    elif kind == "bounded":
        means = np.maximum(_LEAST_OF_BEST * 0.5, 0.5 + means * _BOUNDED_DEVIATION)
    rated = f" rate={rate:g}" if kind == "bernoulli" else ""
    label = f"{kind} K={arms} {structure}{rated}" + (f" delay={delay}" if delay else "") + drawn
    return of_means([float(mean) for mean in rng.permutation(means)], kind, label).with_traffic(delay, 0.0)


def all_environments() -> list[Environment]:
    """Every environment of the study, the costly ones last."""
    found = []
    for arms in (2, 3, 5, 10, 40):
        kinds: tuple[Kind, ...] = ("gaussian", "bernoulli")
        found += [environment(kind, arms, structure) for kind in kinds for structure in _distinct(arms)]
    for arms in (3, 10, 40):
        found += [environment("bounded", arms, structure) for structure in ("linear", "one-good", "random")]
    for arms in (3, 5, 10, 40):
        found += [environment("bernoulli", arms, structure, 0.1) for structure in ("equal", "linear", "one-good", "random")]
    for arms in (5, 10):
        found += [environment("bernoulli", arms, structure, 0.02) for structure in ("equal", "random")]
    for arms in (5, 10, 40):
        for kind in kinds:
            found += [environment(kind, arms, structure, delay=DELAY) for structure in ("linear", "random")]
    found += [environment("gaussian", 200, structure) for structure in ("equal", "linear", "random")]
    found += [environment("bernoulli", 200, structure) for structure in ("linear", "random")]
    found += [environment("gaussian", 1000, "random"), environment("bernoulli", 1000, "random")]
    return found


def _distinct(arms: int) -> tuple[Structure, ...]:
    """The structures that differ for so many arms."""
    return {2: STRUCTURES[:1], 3: ("equal", "linear", "one-good")}.get(arms, STRUCTURES)
