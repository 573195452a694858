"""What a decision of the default policy costs with 10 to 10,000 arms, in processor time, beside the direct formula.

Each figure is one `Ledger.draw`, the production path with its bookkeeping: after a reward to an arm that is not the best, after a
reward to the best arm, and after nothing but the last draw of an experiment whose pending draws count as a number (a mean
moves at every draw). "direct" is the bare choice by the direct formula, without bookkeeping.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from service.domain import Arm, ArmRecord, ArmStatistics, Experiment, Expiry, Progress, RewardSpec
from service.engine.ledger import Ledger
from service.policy.automatic import AutomaticPolicy

RESULT = Path(__file__).parent / "results" / "decision_cost.json"
SIZES = (10, 100, 1_000, 10_000)
NON_BEST_LIMIT_US = 2_000
BEST_LIMIT_US = 25_000
REWARDS_EACH = 4


def experienced_ledger(arms: int, expiry: Expiry | None) -> Ledger:
    """An experiment whose arms were drawn once and have rewards around means of their own."""
    experiment = Experiment(
        id=1,
        key="bench",
        name="",
        description="",
        policy=AutomaticPolicy(0).resolved("real", arms),
        reward=RewardSpec("real"),
        expiry=expiry,
        sticky=False,
        confidence=0.95,
        conclude_when=None,
        status="running",
        concluded_arm=None,
        created_at=0,
    )
    progress = Progress(experiment, version=1, as_of=0, draws=0, epoch=1)
    ledger = Ledger(progress, [ArmRecord(Arm(place, str(place), "", None), ArmStatistics()) for place in range(arms)])
    rng = np.random.default_rng(arms)
    rewards = rng.normal(0.5, 0.1, arms)[:, None] + rng.normal(0, 0.1, (arms, REWARDS_EACH))
    for place in range(arms):
        drawn = ledger.draw(None, None, 0)
        ledger.step(drawn, "reward", float(rewards[place, 0]), 0)
        for reward in rewards[place, 1:]:
            ledger.observe(place, float(reward), None, 0)
        ledger.forget_changes()
    ledger.draw(None, None, 0)
    return ledger


def reward_another(ledger: Ledger, rng: np.random.Generator) -> None:
    """A reward to an arm below the best that leaves it there."""
    means = ledger.allocator.evidence().means
    index = int(rng.choice(np.flatnonzero(means < means.max())))
    ledger.observe(index, float(means[index]) - 0.01 * float(rng.random()), None, 0)


def reward_best(ledger: Ledger, rng: np.random.Generator) -> None:
    """A reward to the best arm that leaves it the best."""
    best = int(ledger.allocator.evidence().means.argmax())
    ledger.observe(best, float(ledger.allocator.evidence().means[best]) + 0.001 * float(rng.random()), None, 0)


def nothing(ledger: Ledger, rng: np.random.Generator) -> None:
    """The last draw has moved a mean already."""


def draw(ledger: Ledger) -> None:
    """The decision as it is made in production."""
    ledger.draw(None, None, 0)


def choose_directly(ledger: Ledger) -> None:
    """The same decision by the direct formula."""
    ledger.allocator.policy.choose(
        ledger.allocator.evidence(), lambda: ledger.allocator.policy.targets(ledger.allocator.evidence()), None
    )


def measure(
    ledger: Ledger, before: Callable[[Ledger, np.random.Generator], None], decide: Callable[[Ledger], None], repetitions: int
) -> dict[str, float]:
    """Median, spread and largest of the processor time of single decisions."""
    rng = np.random.default_rng(1)
    spent = []
    for _ in range(repetitions):
        before(ledger, rng)
        start = time.process_time_ns()
        decide(ledger)
        spent.append((time.process_time_ns() - start) / 1_000)
        ledger.forget_changes()
    low, median, high = np.percentile(spent, [10, 50, 90])
    figures = {"median_us": median, "p10_us": low, "p90_us": high, "largest_us": max(spent), "repetitions": repetitions}
    return {name: round(float(value), 1) for name, value in figures.items()}


def cells_of(arms: int, repetitions: int) -> dict[str, dict[str, float]]:
    """All cells of one number of arms."""
    plain = experienced_ledger(arms, None)
    expiring = experienced_ledger(arms, Expiry(3_600.0, 0.45))
    directly = max(5, repetitions * 100 // max(100, arms))
    return {
        "after a reward to another arm": measure(plain, reward_another, draw, repetitions),
        "after a reward to the best arm": measure(plain, reward_best, draw, repetitions),
        "under a numeric expiry": measure(expiring, nothing, draw, repetitions),
        "direct formula": measure(plain, nothing, choose_directly, directly),
    }


def main() -> None:
    """Measure, print the table, keep the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=300)
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()
    results = {str(arms): cells_of(arms, options.repetitions) for arms in SIZES}
    for arms, cells in results.items():
        for name, cell in cells.items():
            spread = f"({cell['p10_us']:,.0f} to {cell['p90_us']:,.0f}, largest {cell['largest_us']:,.0f})"
            print(f"K = {arms:>6}  {name:<31} {cell['median_us']:>10,.0f} us  {spread}")
    largest = results[str(SIZES[-1])]
    within = {
        "another arm, every K": all(
            cells["after a reward to another arm"]["median_us"] <= NON_BEST_LIMIT_US for cells in results.values()
        ),
        "best arm, K = 10,000": largest["after a reward to the best arm"]["median_us"] <= BEST_LIMIT_US,
    }
    print(f"Within the limits of {NON_BEST_LIMIT_US:,} and {BEST_LIMIT_US:,} us: {within}")
    machine = {"python": platform.python_version(), "numpy": np.__version__, "processor": platform.machine()}
    options.out.write_text(json.dumps({"machine": machine, "within_limits": within, "arms": results}, indent=2) + "\n")


if __name__ == "__main__":
    main()
