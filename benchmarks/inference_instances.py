"""The experiments that the inference studies play: reward kinds, true means, and how their rewards are drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from service.domain import RewardSpec

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
ARMS = 10
BINARY = RewardSpec("binary")
BOUNDED = RewardSpec("bounded", minimum=0.0, maximum=1.0)
REAL = RewardSpec("real")


@dataclass(frozen=True, slots=True)
class Instance:
    """K arms with known means; `draw(rng, arms)` gives one reward for each named arm."""

    name: str
    reward: RewardSpec
    means: Floats
    draw: Callable[[np.random.Generator, Ints], Floats]
    worthwhile: float = 0.0
    """Where it is not 0, `decided` is looked for and not `separated`."""


def bernoulli(name: str, means: Floats) -> Instance:
    """Binary rewards."""
    return Instance(name, BINARY, means, lambda rng, arms: (rng.random(len(arms)) < means[arms]).astype(np.float64))


def beta(name: str, first: Floats, second: Floats) -> Instance:
    """Beta-shaped rewards on [0, 1]."""
    return Instance(name, BOUNDED, first / (first + second), lambda rng, arms: rng.beta(first[arms], second[arms]))


def gaussian(name: str, means: Floats, deviations: Floats) -> Instance:
    """Normal rewards."""
    return Instance(name, REAL, means, lambda rng, arms: means[arms] + deviations[arms] * rng.standard_normal(len(arms)))


def instances() -> list[Instance]:
    """Spread means and equal means of every reward kind, at the edges of the range included."""
    ones, ladder = np.ones(ARMS), np.arange(ARMS) / (ARMS - 1)
    return [
        bernoulli("binary, .01 to .5", np.geomspace(0.01, 0.5, ARMS)),
        bernoulli("binary, all .01", 0.01 * ones),
        bernoulli("binary, all .1", 0.1 * ones),
        bernoulli("binary, all .5", 0.5 * ones),
        beta("bounded, Beta means .3 to .6", 8.0 * (0.3 + 0.3 * ladder), 8.0 * (0.7 - 0.3 * ladder)),
        beta("bounded, all Beta(.1, 1.9), at the lower edge", 0.1 * ones, 1.9 * ones),
        beta("bounded, all Beta(1.9, .1), at the upper edge", 1.9 * ones, 0.1 * ones),
        beta("bounded, all Beta(.1, .1), at both edges", 0.1 * ones, 0.1 * ones),
        beta("bounded, all Beta(200, 300), narrow", 200.0 * ones, 300.0 * ones),
        gaussian("Gaussian, means 0 to 2", 2.0 * ladder, ones),
        gaussian("Gaussian, all equal", 0.0 * ones, ones),
        gaussian("Gaussian, equal means, deviations .1 to 10", 7.0 * ones, np.geomspace(0.1, 10.0, ARMS)),
        *_worthwhile_instances(),
    ]


def _worthwhile_instances() -> list[Instance]:
    """One arm is better than nine equal ones by just what is worthwhile: whatever is decided for one of those is false."""
    gap, last = 2.0**-4, np.arange(ARMS) == ARMS - 1
    shares, means = 0.25 + gap * last, 0.375 + gap * last
    beta_arms = beta("bounded, nine Beta(3, 5) and one better by .0625", 8.0 * means, 8.0 * (1.0 - means))
    return [
        replace(bernoulli("binary, nine .25 and one .3125", shares), worthwhile=gap),
        replace(beta_arms, worthwhile=gap),
        replace(gaussian("Gaussian, nine 0 and one .25", 0.25 * last, np.ones(ARMS)), worthwhile=0.25),
    ]
