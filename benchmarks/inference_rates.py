"""Two bounded arms: the fewest draws in which evidence could grow to the goal, with three sums kept and with every reward.

    python -m benchmarks.inference_rates

With as many rewards of either arm, the evidence of the best bets grows by a fixed rate a draw, the least over the common mean.
The goal over this rate is what nobody is faster than on average: by bets that know the best sizes from the start, and pay for
no mixture. From three sums the rate is that of the two arms' coins, the sum of their Kullback-Leibler divergences from coins of
the common mean (`bounded.worst_coin`). No chance is involved. Writes docs/inference/rates.json.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from scipy.special import rel_entr
from scipy.stats import beta

from benchmarks.inference_instances import Floats
from service.inference import bounded
from service.inference.levels import pair_levels
from service.inference.samples import Samples

RESULTS = Path(__file__).parent.parent / "docs" / "inference" / "rates.json"
GOAL = -float(np.log(pair_levels(np.zeros(2, np.int64), np.ones(2, np.bool_), 0, 0.05)[1]))
# As in `inference_verdicts`: means, and the sum of the two parameters of their Beta distributions.
CASES = {
    "Beta, .4 and .5, deviation .16": (0.4, 0.5, 8.0),
    "Beta, .5 and .55, deviation .1": (0.5, 0.55, 24.0),
    "Beta, .04 and .05, skewed, deviation .06": (0.04, 0.05, 10.0),
    "Beta, .40 and .41, deviation .02": (0.40, 0.41, 500.0),
}
_BETS: Floats = 2.0 ** np.arange(-6.0, 12.0, 0.25)[:, None]
_QUANTILES = (np.arange(4000) + 0.5) / 4000


def coin_rate(mean: float, variance: float, common: Floats) -> Floats:
    """Evidence a reward for a mean above the common ones, from three sums."""
    _, heads, size = bounded.worst_coin(Samples(np.ones(1), np.array([mean]), np.array([variance])))
    rate: Floats = rel_entr(heads, common / size) + rel_entr(1.0 - heads, 1.0 - common / size)
    return rate


def betting_rate(rewards: Floats, common: Floats) -> Floats:
    """The same of the best bet for every common mean, with all rewards kept."""
    earned = np.log1p(_BETS * rewards).mean(axis=1)
    rate: Floats = (earned[:, None] - np.log1p(_BETS * common)).max(axis=0)
    return rate


def main() -> None:
    """Every case."""
    rows = []
    for name, (worse, better, weight) in CASES.items():
        common = np.linspace(worse, better, 203)[1:-1]
        three, every = np.zeros(len(common)), np.zeros(len(common))
        for mean, at, mirror in ((better, common, False), (worse, 1.0 - common, True)):
            rewards = beta.ppf(_QUANTILES, weight * mean, weight * (1.0 - mean))
            three += coin_rate(1.0 - mean if mirror else mean, mean * (1.0 - mean) / (weight + 1.0), at)
            every += betting_rate(1.0 - rewards if mirror else rewards, at)
        rows.append(
            {"case": name, "three_sums": round(2.0 * GOAL / three.min()), "every_reward": round(2.0 * GOAL / every.min())}
        )
        print(rows[-1], flush=True)
    RESULTS.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
