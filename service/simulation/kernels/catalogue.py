"""The algorithms by the names that studies and result files give them, with options after colons.

For example `simple_tracking:ties=paper`, `almost_tracking:realised`, `simple_tracking:s=1.5:guard=0.25`, `dsr:t1=213`. Without
options the tracking policies are what the API's defaults make of them. Here it is decided what an algorithm needs; the files
beside say what it does.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from service.errors import InvalidValue
from service.policy.automatic import AutomaticPolicy
from service.simulation.environments import REWARD_KINDS, Environment

Play = Callable[..., None]
DrawsForArms = Callable[[int], int]


@dataclass(frozen=True, slots=True)
class Algorithm:
    """What the runner must know of an algorithm; the machine code is loaded when it is first played."""

    module: str
    """The file beside this one whose `play` it is."""
    title: str
    needs_budget: bool
    """True if T must be known beforehand: a recommendation before T is not what it was made for."""
    least_budget: DrawsForArms
    """The smallest T for so many arms."""
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Contender:
    """An algorithm with its options, ready for a number of arms."""

    name: str
    algorithm: Algorithm
    options: dict[str, float] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """How figures and tables call it."""
        if not self.options:
            return self.algorithm.title
        parts = [_option_text(key, value) for key, value in self.options.items()]
        return f"{self.algorithm.title} ({', '.join(parts)})"

    def require_budget(self, arms: int, budget: int) -> None:
        """Raise if the budget is below what the algorithm needs."""
        least = self.algorithm.least_budget(arms)
        if self.name.startswith(("dsr", "dsh")):
            least = max(least, int(self.options.get("t1", 0)))
        if budget < least:
            raise InvalidValue(
                "/budget",
                f"{self.name} needs a budget of at least {least} draws for {arms} arms, not {budget}.",
            )

    def play(self) -> Play:
        """The compiled run of this algorithm."""
        played: Play = importlib.import_module(f"service.simulation.kernels.{self.algorithm.module}").play
        return played

    def parameters(self, arms: int) -> tuple[Any, ...]:
        """What its run takes besides the common arguments."""
        return _parameters(self, arms)


def _once(arms: int) -> int:
    return arms


def _one_more(arms: int) -> int:
    return arms + 1


def _two_each(arms: int) -> int:
    return 2 * arms


def _halving(arms: int) -> int:
    return arms * math.ceil(math.log2(arms))


def _victory(arms: int) -> int:
    return 2 * arms * (arms + 1)


_FLAGS = ("realised", "binary")
_WORDS = {"ties": {"paper": 0.0, "limit": 1.0}}


def _option_text(key: str, value: float) -> str:
    """An option as titles write it."""
    if key in _WORDS:
        return f"{key} = {next(word for word, number in _WORDS[key].items() if number == value)}"
    return key if key in _FLAGS else f"{key} = {value:g}"


ALGORITHMS: dict[str, Algorithm] = {
    "simple_tracking": Algorithm("simple_tracking_kernel", "Simple Tracking", False, _once, ("s", "guard", "ties")),
    "almost_tracking": Algorithm(
        "almost_tracking_kernel", "Almost Tracking", False, _two_each, ("realised", "s", "guard", "ties", "n", "c")
    ),
    "uniform": Algorithm("uniform_kernel", "Uniform", False, _once),
    "sr": Algorithm("successive_rejects", "SR", True, _one_more),
    "sh": Algorithm("sequential_halving", "SH", True, _halving),
    "cr_a": Algorithm("continuous_rejects", "CR-A", True, _one_more, ("theta0",)),
    "cr_c": Algorithm("continuous_rejects", "CR-C", True, _one_more, ("theta0",)),
    "dsr": Algorithm("doubling_successive_rejects", "DSR", False, _halving, ("t1",)),
    "dsh": Algorithm("doubling_sequential_halving", "DSH", False, _halving, ("t1",)),
    "ts_tc": Algorithm("ts_tc", "TS-TC", False, _once, ("binary",)),
    "eb_tc": Algorithm("eb_tc", "EB-TC", False, _once, ("binary",)),
    "eb_tc_eps0": Algorithm("eb_tc_eps0", "EB-TC-eps0", False, _once, ("eps0", "binary")),
    "pooled": Algorithm("pooled_allocation", "Pooled Allocation", True, _victory),
}

_RANGES: dict[str, tuple[float, float]] = {
    "realised": (1.0, 1.0),
    "binary": (1.0, 1.0),
    "s": (0.0, 10.0),
    "guard": (0.0, 1.0),
    "n": (2.0, 1e9),
    "c": (1e-6, 1.0),
    "theta0": (0.0, 1.0),
    "t1": (2.0, 1e9),
    "eps0": (0.0, 1e6),
}


AUTO = "auto"


def resolved_name(name: str, environment: Environment) -> str:
    """The name, or for `auto` the one of the policy that a new experiment with such rewards and arms would have."""
    if name != AUTO:
        return name
    spec = AutomaticPolicy(0).resolved(REWARD_KINDS[environment.kind], environment.arms)
    mixture = f":s={spec.sharpness:g}:guard={spec.guard:g}" if spec.sharpness != 1.0 else ""
    return f"{spec.kind}{mixture}" + ("" if spec.ties == "limit" else f":ties={spec.ties}")


def contender(name: str) -> Contender:
    """The algorithm that a name with options stands for."""
    base, *texts = name.split(":")
    if base not in ALGORITHMS:
        raise InvalidValue("/policies", f"There is no policy {base!r}. Policies: {', '.join((AUTO, *ALGORITHMS))}.")
    algorithm = ALGORITHMS[base]
    return Contender(name, algorithm, dict(_option(base, algorithm, text) for text in texts))


def _option(base: str, algorithm: Algorithm, text: str) -> tuple[str, float]:
    """One option as its name and number; a flag is 1."""
    key, _, value = text.partition("=")
    if key not in algorithm.options:
        known = f"its options are {', '.join(algorithm.options)}" if algorithm.options else "it has none"
        raise InvalidValue("/policies", f"{base} has no option {key!r}; {known}.")
    if key in _WORDS:
        if value not in _WORDS[key]:
            raise InvalidValue("/policies", f"{base}: {key} is one of {', '.join(_WORDS[key])}, not {value!r}.")
        return key, _WORDS[key][value]
    try:
        number = 1.0 if key in _FLAGS and not value else float(value)
    except ValueError:
        raise InvalidValue("/policies", f"The option {text!r} of {base} needs a number.") from None
    low, high = _RANGES[key]
    if not low <= number <= high:
        raise InvalidValue("/policies", f"{base}: {key} must lie between {low:g} and {high:g}.")
    return key, number


def _parameters(chosen: Contender, arms: int) -> tuple[Any, ...]:
    """The algorithm's own arguments, in the order of its `play`."""
    options = chosen.options
    rule = (options.get("s", 1.0), options.get("guard", 0.0), options.get("ties", 1.0) == 1.0)
    binary = "binary" in options
    first = int(options.get("t1", _halving(arms)))
    start = options.get("theta0", 0.01)
    batch = (int(options.get("n", 0)), options.get("c", 0.999), "realised" in options)
    own: dict[str, tuple[Any, ...]] = {
        "simple_tracking": rule,
        "almost_tracking": (*batch, *rule, np.zeros((0, 0))),
        "cr_a": (start, True),
        "cr_c": (start, False),
        "dsr": (first,),
        "dsh": (first,),
        "ts_tc": (binary,),
        "eb_tc": (binary,),
        "eb_tc_eps0": (options.get("eps0", 0.1), binary),
        "pooled": (np.zeros(0),),
    }
    return own.get(chosen.name.split(":")[0], ())
