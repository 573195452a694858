"""How many draws until the leader is separated: by the test of the service and by the one it had before, in the same runs.

    python -m benchmarks.inference_verdicts --runs 200
    python -m benchmarks.inference_verdicts --runs 100 --fresh

Under the default policy, and for the weights that it was chosen from; with two arms all of them draw alike. Before, the evidence
of two arms was the product of two mixtures, one an arm: Beta(1/2, 1/2) at the pooled share for binary rewards, the 37 bets of
`bernstein_wealth` at the worst common mean for bounded ones. Looks are half a percent apart. A case ends when both tests have
separated the leader in more than half of its runs, or after `--draws`. Writes docs/inference/verdicts.json after each case, and
goes on where it stopped; the fresh cases, which had no say in the weights of the bets, go to fresh_verdicts.json.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np

from benchmarks.inference_instances import Floats, Instance, Ints, bernoulli, beta
from benchmarks.inference_lockstep import DEFAULT, UNIFORM, Player, Runs, play
from service.inference import binary
from service.inference.levels import pair_levels
from service.inference.pairs import exceeds, real_ceiling
from service.inference.samples import Bools, Samples
from service.policy.weights import LIMIT, WeightRule

RESULTS = Path(__file__).parent.parent / "docs" / "inference" / "verdicts.json"
SEED, ALPHA = 41, 0.05
_LOOKS = 1.005
Test: TypeAlias = Callable[[Samples, Samples, Floats], Bools]

WEIGHTS = (
    DEFAULT,
    Player("s = 1", "simple_tracking", LIMIT),
    Player("s = 1.5", "simple_tracking", WeightRule(sharpness=1.5, ties="limit")),
    UNIFORM,
)
# The bets of the test before, evenly weighted.
_BETS_BEFORE = 2.0 ** (np.arange(-24, 13) / 2.0)
_COMMON_MEANS = np.linspace(0.0, 1.0, 33)


def coins(name: str, means: list[float]) -> Instance:
    """Binary rewards with these rates."""
    return bernoulli(name, np.array(means))


def betas(name: str, means: list[float], weight: float) -> Instance:
    """Beta rewards with these means; the weight is the sum of the two parameters."""
    return beta(name, weight * np.array(means), weight * (1.0 - np.array(means)))


CASES = (
    coins(".5 and .4", [0.4, 0.5]),
    coins(".5 and .45", [0.45, 0.5]),
    coins(".1 and .08", [0.08, 0.1]),
    coins(".05 and .04", [0.04, 0.05]),
    coins(".02 and .015", [0.015, 0.02]),
    coins("four arms .10 and one .13", [0.10] * 4 + [0.13]),
    coins("ten arms .03, .05, ..., .19, .25", [*np.arange(0.03, 0.20, 0.02).tolist(), 0.25]),
    coins("four arms .05 and one .06", [0.05] * 4 + [0.06]),
    coins("nine arms .08 and one .1", [0.08] * 9 + [0.1]),
    betas("Beta, .4 and .5, deviation .16", [0.4, 0.5], 8.0),
    betas("Beta, .5 and .55, deviation .1", [0.5, 0.55], 24.0),
    betas("Beta, .04 and .05, skewed, deviation .06", [0.04, 0.05], 10.0),
    betas("Beta, .40 and .41, deviation .02", [0.40, 0.41], 500.0),
    betas("Beta, four arms .4 and one .45, deviation .16", [0.4] * 4 + [0.45], 8.0),
    betas("Beta, ten arms .3 to .6, deviation .16", np.linspace(0.3, 0.6, 10).tolist(), 8.0),
)

FRESH = (
    betas("Beta, .2 and .25, deviation .13", [0.2, 0.25], 10.0),
    betas("Beta, .7 and .72, deviation .07", [0.7, 0.72], 40.0),
    betas("Beta, .01 and .013, deviation .02", [0.01, 0.013], 30.0),
    betas("Beta, .5 and .53, deviation .29", [0.5, 0.53], 2.0),
    betas("Beta, .3 and .31, deviation .03", [0.3, 0.31], 300.0),
    betas("Beta, three arms .1, one .11 and one .13, deviation .1", [0.1, 0.1, 0.1, 0.11, 0.13], 10.0),
    betas("Beta, .9 and .95, deviation .06", [0.9, 0.95], 20.0),
)


def product_of_coins(high: Samples, low: Samples, levels: Floats) -> Bools:
    """The test before, for binary rewards."""
    pooled = (binary.successes(high) + binary.successes(low)) / np.maximum(high.counts + low.counts, 1.0)
    found = binary.log_evidence(high, pooled) + binary.log_evidence(low, pooled)
    shown: Bools = (high.means > low.means) & (low.counts > 0) & (found >= -np.log(levels))
    return shown


def bernstein_wealth(samples: Samples, candidates: Floats) -> Floats:
    """Log of the mixture of bets on a mean above the candidates (last axis), by the inequality of Fan, Grama and Liu."""
    counts, means, squares = (each[:, None] for each in samples)
    excess = means - candidates
    stakes = np.minimum(_BETS_BEFORE[:, None, None] * candidates + 1e-4, 1.0)
    with np.errstate(divide="ignore"):
        cost = (np.log1p(-stakes) + stakes) / (stakes * stakes)
    bets = _BETS_BEFORE[:, None, None]
    terms = bets * (counts * excess + cost * bets * (squares + counts * excess * excess + 1e-300))
    found: Floats = np.logaddexp.reduce(terms, axis=0) - np.log(len(_BETS_BEFORE))
    return found


def product_of_bets(high: Samples, low: Samples, levels: Floats) -> Bools:
    """The test before, for bounded rewards: at 33 means between the two."""
    # No bet earned more by that inequality than a Gaussian likelihood ratio: most pairs need no closer look.
    possible = real_ceiling(high, low) >= -np.log(levels)
    shown: Bools = (high.means > low.means) & (low.counts > 0) & possible
    rows = np.flatnonzero(shown)
    high, low = high.pick(rows), low.pick(rows)
    common = low.means[:, None] + (high.means - low.means)[:, None] * _COMMON_MEANS
    mirrored = Samples(low.counts, 1.0 - low.means, low.squares)
    found = bernstein_wealth(high, common) + bernstein_wealth(mirrored, 1.0 - common)
    shown[rows] = found.min(axis=1) >= -np.log(levels[rows])
    return shown


def separated(state: Runs, runs: Ints, test: Test, levels: Floats) -> Ints:
    """Those of the runs whose leader beats all its rivals, the closest first."""
    leaders = state.leaders()[runs]
    rivals = np.where(state.counts[runs] > 0, state.means[runs], -np.inf)
    rivals[np.arange(len(runs)), leaders] = np.inf
    # By their means, best first, after the leader itself.
    order, kept = np.argsort(-rivals, axis=1, kind="stable"), np.arange(len(runs))
    for nth in range(1, rivals.shape[1]):
        if len(kept) == 0:
            break
        rival = order[kept, nth]
        high, low = state.samples(runs[kept], leaders[kept]), state.samples(runs[kept], rival)
        kept = kept[test(high, low, levels[rival])]
    return runs[kept]


def study(instance: Instance, player: Player, runs: int, draws: int) -> dict[str, object]:
    """One row of the table."""
    started, arms = time.perf_counter(), len(instance.means)
    levels = pair_levels(np.zeros(arms, np.int64), np.ones(arms, np.bool_), 0, ALPHA)
    before = product_of_coins if instance.reward.kind == "binary" else product_of_bets
    tests: dict[str, Test] = {"now": partial(exceeds, instance.reward), "before": before}
    when, wrong = {each: np.full(runs, np.inf) for each in tests}, 0
    look = 20
    for step, (state, _) in enumerate(play(instance, player, runs, draws, seed=SEED)):
        if step + 1 < look:
            continue
        look = max(look + 1, int(look * _LOOKS))
        for each, test in tests.items():
            waiting = np.flatnonzero(np.isinf(when[each]))
            shown = separated(state, waiting, test, levels)
            when[each][shown] = step + 1
            wrong += int((state.leaders()[shown] != instance.means.argmax()).sum())
        if all(np.isfinite(np.median(found)) for found in when.values()):
            break
    medians = {each: float(np.median(found)) for each, found in when.items()}
    known = {each: None if np.isinf(median) else median for each, median in medians.items()}
    return {
        "case": instance.name,
        "kind": instance.reward.kind,
        "policy": player.name,
        "runs": runs,
        "seed": SEED,
        **known,
        "ratio": None if np.isinf(medians["before"]) else medians["now"] / medians["before"],
        "wrong": wrong,
        "seconds": round(time.perf_counter() - started, 1),
    }


def main() -> None:
    """All cases that are not in the results yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--draws", type=int, default=400_000)
    parser.add_argument("--kind", choices=["binary", "bounded"], help="only the cases with these rewards")
    parser.add_argument("--fresh", action="store_true", help="the fresh cases, under the default policy")
    parser.add_argument("--results", type=Path)
    arguments = parser.parse_args()
    results = arguments.results or (RESULTS.with_name("fresh_verdicts.json") if arguments.fresh else RESULTS)
    rows = json.loads(results.read_text()) if results.exists() else []
    done = {(row["case"], row["policy"]) for row in rows}
    for instance in FRESH if arguments.fresh else CASES:
        players = WEIGHTS if len(instance.means) > 2 and not arguments.fresh else (DEFAULT,)  # noqa: PLR2004 - two arms share alike
        for player in players:
            if (instance.name, player.name) in done or arguments.kind not in {None, instance.reward.kind}:
                continue
            rows.append(study(instance, player, arguments.runs, arguments.draws))
            print(rows[-1], flush=True)
            results.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
