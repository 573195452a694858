"""What is played: the paper's ten instances, the two real-world ones, or any means, with rewards that may come late or never.

The data files hold the means as the paper prints them; instance 2 increases, so its best arm is the last one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any, Literal, TypeAlias

import numpy as np

from service.domain import RewardKind
from service.domain.limits import FEWEST_ARMS, MOST_ARMS
from service.errors import InvalidValue
from service.policy.base import Floats

Kind: TypeAlias = Literal["gaussian", "bernoulli", "bounded"]
KINDS: tuple[Kind, ...] = ("gaussian", "bernoulli", "bounded")
# The API's words for them.
REWARD_KINDS: dict[Kind, RewardKind] = {"gaussian": "real", "bernoulli": "binary", "bounded": "bounded"}

# Beyond this a Gaussian reward of unit variance says nothing that one draw would not, and products of gaps could overflow.
LARGEST_MEAN = 1e6
LONGEST_DELAY = 10_000_000
INSTANCES = tuple(str(number) for number in range(1, 11))
REAL_WORLD = ("open_bandit", "movielens")


@dataclass(frozen=True, slots=True)
class Environment:
    """The arms' means and how their rewards come."""

    label: str
    means: tuple[float, ...]
    kind: Kind = "gaussian"
    delay: int = 0
    """Draws decided before a reward is known; with `geometric` the mean of a random delay."""
    geometric: bool = False
    loss: float = 0.0

    @property
    def arms(self) -> int:
        """Their number, K."""
        return len(self.means)

    @property
    def best(self) -> int:
        """The position of the best arm."""
        return int(np.argmax(self.means))

    def array(self) -> Floats:
        """The means as an array."""
        return np.array(self.means, dtype=np.float64)

    def with_traffic(self, delay: int, loss: float, *, geometric: bool = False) -> Environment:
        """The same arms with rewards that come late or get lost."""
        if not 0 <= delay <= LONGEST_DELAY:
            raise InvalidValue("/delay", f"The delay must lie between 0 and {LONGEST_DELAY} draws.")
        if not 0.0 <= loss < 1.0:
            raise InvalidValue("/loss", "The loss is a probability below 1.")
        return replace(self, delay=delay, loss=loss, geometric=geometric and delay > 0)


def of_means(means: Sequence[float], kind: Kind = "gaussian", label: str = "means") -> Environment:
    """An environment with the user's means."""
    _require_simulable(means, kind)
    return Environment(label, tuple(float(mean) for mean in means), kind)


def _require_simulable(means: Sequence[float], kind: Kind) -> None:
    """Raise if there is nothing to find, or nothing that can be simulated."""
    if kind not in KINDS:
        raise InvalidValue("/kind", f"There are no {kind!r} rewards. Kinds: {', '.join(KINDS)}.")
    if not FEWEST_ARMS <= len(means) <= MOST_ARMS:
        raise InvalidValue("/means", f"The number of arms must lie between {FEWEST_ARMS} and {MOST_ARMS}, not {len(means)}.")
    values = np.array(means, dtype=np.float64)
    if not (np.abs(values) <= LARGEST_MEAN).all():
        raise InvalidValue("/means", f"Means must be numbers of at most {LARGEST_MEAN:g} in magnitude.")
    if kind != "gaussian" and ((values < 0.0) | (values > 1.0)).any():
        raise InvalidValue("/means", f"Means of {kind} rewards lie between 0 and 1.")
    if (values == values.max()).sum() > 1:
        raise InvalidValue("/means", "Two arms share the largest mean: there is no best arm to find.")


def instance(name: str) -> Environment:
    """One of the paper's instances by its number, or `open_bandit` or `movielens`."""
    if name in INSTANCES:
        return of_means(_data("instances")["instances"][name], label=name)
    if name == "open_bandit":
        data = _data("real_world")["open_bandit"]
        return of_means([rate / data["mean_std"] * 1000.0**0.5 for rate in data["ctr"]], label=name)
    if name == "movielens":
        data = _data("real_world")["movielens_1m"]
        return of_means([rating / data["mean_std"] for rating in data["rating"]], label=name)
    raise InvalidValue("/instance", f"There is no instance {name!r}. Instances: 1 to 10, {', '.join(REAL_WORLD)}.")


def _data(name: str) -> dict[str, Any]:
    """A data file of this package."""
    text = resources.files("service.simulation").joinpath("data", f"{name}.json").read_text()
    loaded: dict[str, Any] = json.loads(text)
    return loaded
