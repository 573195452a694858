"""How much wider than an interval for one planned look: n = 1,000 rewards an arm, K = 10, alpha = 0.05.

    python -m benchmarks.inference_width

For each distribution 400 samples of 1,000 rewards; the ratio of the mean widths at the same level (0.9 * 0.05 / 10 an arm). The
yardstick: Wilson's interval for binary rewards (Clopper and Pearson's beside it), Student's t for the others, which holds for
bounded rewards only approximately. For bounded rewards two more yardsticks say what knowing only three sums costs: `betting`, the
same mixture of bets with every reward kept, and `coin`, an interval for one look (Chernoff's) for the coins that have the same
three sums, which nobody who knows only these can tell from the rewards. Both from the first 40 samples. Writes
docs/inference/width.json.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from scipy.special import betaincinv, ndtri, rel_entr, stdtrit

from benchmarks.inference_instances import BINARY, BOUNDED, REAL, Floats
from service.domain import RewardSpec
from service.inference import bounded
from service.inference.intervals import confidence_intervals
from service.inference.levels import arm_levels
from service.inference.samples import Samples

RESULTS = Path(__file__).parent.parent / "docs" / "inference" / "width.json"
SAMPLES, REWARDS = 400, 1000
_KEPT_SAMPLES = 40
LEVEL = float(arm_levels(np.zeros(10, np.int64), 0.05)[0])


def student(means: Floats, variances: Floats) -> Floats:
    """Width of the t-interval."""
    width: Floats = -2.0 * stdtrit(REWARDS - 1, LEVEL / 2) * np.sqrt(variances / REWARDS) + 0.0 * means
    return width


def wilson(means: Floats) -> Floats:
    """Width of Wilson's interval."""
    z = -ndtri(LEVEL / 2)
    width: Floats = 2 * z / (1 + z**2 / REWARDS) * np.sqrt(means * (1 - means) / REWARDS + z**2 / (4 * REWARDS**2))
    return width


def clopper_pearson(means: Floats) -> Floats:
    """Width of the exact interval."""
    ones = np.rint(means * REWARDS)
    upper = np.where(ones < REWARDS, betaincinv(ones + 1, np.maximum(REWARDS - ones, 1), 1 - LEVEL / 2), 1.0)
    lower = np.where(ones > 0, betaincinv(np.maximum(ones, 1), REWARDS - ones + 1, LEVEL / 2), 0.0)
    return upper - lower


def betting(rewards: Floats) -> float:
    """Mean width of the interval from the same mixture of bets, each reward kept."""

    def log_wealth(own: Floats, candidates: Floats) -> Floats:
        log_products = [
            np.log1p(odds * own / candidates[:, None]).sum(axis=1) - REWARDS * np.log1p(odds) for odds in bounded.ODDS
        ]
        mixture: Floats = np.logaddexp.reduce(np.stack(log_products) + np.log(bounded.WEIGHTS)[:, None], axis=0)
        return mixture

    return float(sum((own.mean(axis=1) - lowest(partial(log_wealth, own), own)).mean() for own in (rewards, 1.0 - rewards)))


def coin(rewards: Floats) -> float:
    """Mean width of Chernoff's interval for one look at the coins with the same sums."""

    def log_likelihood_ratio(own: Floats, candidates: Floats) -> Floats:
        _, heads, size = bounded.worst_coin(
            Samples(np.full(len(own), 1.0 * REWARDS), own.mean(axis=1), REWARDS * own.var(axis=1))
        )
        shares = candidates / size
        ratio: Floats = rel_entr(heads, REWARDS * shares) + rel_entr(REWARDS - heads, REWARDS * (1.0 - shares))
        return ratio

    sides = (rewards, 1.0 - rewards)
    return float(sum((own.mean(axis=1) - lowest(partial(log_likelihood_ratio, own), own)).mean() for own in sides))


def lowest(log_evidence: Callable[[Floats], Floats], rewards: Floats) -> Floats:
    """Where the evidence, which falls up to the mean, is what half the level asks for; by halving."""
    low, high = np.full(len(rewards), 1e-12), rewards.mean(axis=1)
    for _ in range(25):
        middle = 0.5 * (low + high)
        enough = log_evidence(middle) >= np.log(2.0 / LEVEL)
        low, high = np.where(enough, middle, low), np.where(enough, high, middle)
    return low


def row(name: str, reward: RewardSpec, rewards: Floats) -> dict[str, object]:
    """The ratio of mean widths for one distribution."""
    means, variances = rewards.mean(axis=1), rewards.var(axis=1, ddof=1)
    counts, levels = np.full(SAMPLES, REWARDS), np.full(SAMPLES, LEVEL)
    lower, upper = confidence_intervals(reward, counts, means, variances, levels)
    width = float((upper - lower).mean())
    fixed = wilson(means) if reward.kind == "binary" else student(means, variances)
    result: dict[str, object] = {
        "distribution": name,
        "kind": reward.kind,
        "deviation": round(float(np.sqrt(variances.mean())), 4),
        "width": width,
        "fixed_time_width": float(fixed.mean()),
        "ratio": width / float(fixed.mean()),
    }
    if reward.kind == "binary":
        result["ratio_to_clopper_pearson"] = width / float(clopper_pearson(means).mean())
    if reward.kind == "bounded":
        some = rewards[:_KEPT_SAMPLES]
        result["betting"], result["coin"] = betting(some), coin(some)
    return result


def main() -> None:
    """All distributions."""
    rng = np.random.default_rng(8)
    shape = (SAMPLES, REWARDS)
    rows = [
        row(f"Bernoulli({p:g})", BINARY, (rng.random(shape) < p).astype(np.float64))
        for p in (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
    ]
    shapes = [
        (0.1, 0.1),
        (1, 1),
        (2, 2),
        (12, 12),
        (100, 100),
        (0.4, 3.6),
        (0.4, 7.6),
        (0.2, 9.8),
        (3.6, 0.4),
        (2, 8),
        (200, 300),
    ]
    rows += [row(f"Beta({a:g}, {b:g})", BOUNDED, rng.beta(a, b, shape)) for a, b in shapes]
    rows += [
        row(f"scaled coin of deviation {sd:g}", BOUNDED, 0.5 + sd * np.sign(rng.random(shape) - 0.5))
        for sd in (0.5, 0.25, 0.1, 0.01)
    ]
    rows += [row("Gaussian", REAL, rng.standard_normal(shape)), row("exponential", REAL, rng.exponential(size=shape))]
    for each in rows:
        print(each)
    RESULTS.write_text(json.dumps({"rewards": REWARDS, "level": LEVEL, "samples": SAMPLES, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
