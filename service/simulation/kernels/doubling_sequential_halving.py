"""DSH: SH in epochs of doubling budget [paper, appendix "Compared algorithms"]. Anytime.

Epoch e is a fresh SH with the budget T1 * 2^e that forgets the past; recommended is the winner of the last finished
epoch, none before the first. Open in the paper: T1, which is only "O(K log2 K)". Taken: T1 = K * ceil(log2 K), 240 at K =
40; `dsh:t1=213` would be ceil(K log2 K). An epoch ends with its last draw, so what its phases leave of its budget is not
lost.
"""

from __future__ import annotations

import numpy as np

from service.policy.base import Floats, Ints
from service.simulation.kernels.compilation import compiled
from service.simulation.kernels.doubling_epochs import run_epochs
from service.simulation.kernels.traffic import World


@compiled
def play(
    truth: Floats,
    world: World,
    budget: int,
    checkpoints: Ints,
    picks: Ints,
    trace: Ints,
    rng: np.random.Generator,
    first: int,
) -> None:
    """One run whose first epoch has the budget `first`."""
    run_epochs(truth, world, budget, checkpoints, picks, trace, rng, first, True)
