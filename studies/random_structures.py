"""Random gap structures for the sharpness study: how the other arms lie below the best one, drawn once from a fixed seed.

Gaps are u^shape for uniform u: shape 0.5 puts most arms far below, 2 crowds them near the best. They are scaled to a
given H1 in units of the rewards' deviation, so that every structure of a size is about equally hard. The best arm stands
at a random position, because ties of binary rewards go to the lowest one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from service.simulation.environments import Environment, of_means

if TYPE_CHECKING:
    from service.simulation.environments import Kind

SHAPES = (0.5, 1.0, 2.0)
SIZES = (3, 10, 40, 200)
_HARDNESS = {3: 60.0, 10: 80.0, 40: 120.0, 200: 300.0}
_SEED = 2026
_BINARY_BEST = 0.5
_BINARY_LOWEST = 0.01


def random_structure(arms: int, shape: float, kind: Kind) -> Environment:
    """The structure of this size and shape."""
    rng = np.random.default_rng([_SEED, arms, int(4 * shape), kind == "bernoulli"])
    gaps = rng.random(arms - 1) ** shape
    gaps = np.maximum(gaps, 0.02)  # a gap of almost nothing would be all of H1
    gaps *= np.sqrt((1.0 / gaps**2).sum() / _HARDNESS[arms])
    means = np.concatenate([[0.0], -gaps])
    if kind == "bernoulli":
        means = np.maximum(_BINARY_LOWEST, _BINARY_BEST + 0.5 * means)
    label = f"{kind} K={arms} shape={shape:g}"
    return of_means([float(mean) for mean in rng.permutation(means)], kind, label)


def all_structures() -> list[Environment]:
    """Every size, shape and kind."""
    kinds: tuple[Kind, ...] = ("gaussian", "bernoulli")
    return [random_structure(arms, shape, kind) for arms in SIZES for shape in SHAPES for kind in kinds]
