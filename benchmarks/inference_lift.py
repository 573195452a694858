"""Coverage of the lift: does an interval of any arm ever leave out its true difference or ratio to the control?

    python -m benchmarks.inference_lift --runs 2000 --draws 5000

Five arms, the first is the control, the default policy draws. Looks are after every reward up to the thousandth and after every
tenth from then on; a run misses if any interval of its four arms leaves out the truth at any of them. Writes
docs/inference/lift.json after each instance, and goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
from scipy.special import rel_entr

from benchmarks.inference_coverage import misses as own_misses
from benchmarks.inference_instances import Floats, Instance, bernoulli, beta, gaussian
from benchmarks.inference_lockstep import DEFAULT, Runs, play
from service.domain import RewardKind
from service.inference import binary, binary_pairs, bounded, bounded_pairs, real
from service.inference.intervals import confidence_intervals
from service.inference.levels import arm_levels
from service.inference.lift import Range, tested_ranges
from service.inference.pairs import independent_product_goal
from service.inference.samples import Bools, Ints, Samples

RESULTS = Path(__file__).parent.parent / "docs" / "inference" / "lift.json"
ALPHA, ARMS = 0.05, 5
CONTROL = 0
_EVERY_REWARD_UP_TO, _THEN_EVERY = 1_000, 10


def cases() -> list[Instance]:
    """Equal and unequal means of each kind of rewards, rare ones, ones at the edge of the range, unequal deviations."""
    ones, ladder = np.ones(ARMS), np.arange(ARMS) / (ARMS - 1)
    return [
        bernoulli("binary, four arms .10 and one .13", np.array([0.1, 0.1, 0.1, 0.1, 0.13])),
        bernoulli("binary, .02 to .1", 0.02 + 0.08 * ladder),
        bernoulli("binary, all .5", 0.5 * ones),
        beta("bounded, Beta means .3 to .6", 8.0 * (0.3 + 0.3 * ladder), 8.0 * (0.7 - 0.3 * ladder)),
        beta("bounded, all Beta(.1, 1.9), at the lower edge", 0.1 * ones, 1.9 * ones),
        gaussian("Gaussian, means 1 to 2", 1.0 + ladder, ones),
        gaussian("Gaussian, all equal to 1", ones, ones),
        gaussian("Gaussian, equal means, deviations .1 to 10", 7.0 * ones, np.geomspace(0.1, 10.0, ARMS)),
    ]


def most_evidence(state: Runs) -> Floats:
    """What the log evidence against the true mean of each arm of each run cannot exceed: most pairs need no closer look.

    Likelihood ratios are at most those of the sample means; see `pairs.evidence_ceiling` for the others.
    """
    counts, means, truth = state.counts, state.means, state.instance.means
    if state.instance.reward.kind == "binary":
        ratios: Floats = counts * (rel_entr(means, truth) + rel_entr(1.0 - means, 1.0 - truth))
        return ratios
    with np.errstate(divide="ignore", invalid="ignore"):
        most = (counts * (means - truth)) ** 2 / (2.0 * state.squares)
    return np.where((counts > 0) & (state.squares == 0.0), np.inf, np.nan_to_num(most, posinf=np.inf))


def suspects(state: Runs, levels: Floats) -> Bools:
    """Runs (first axis) and arms whose interval may leave out the truth: there is enough evidence, or against the control."""
    goals = np.log(2.0 / levels)
    if state.instance.reward.kind == "real":
        goals = independent_product_goal(goals)
    most = most_evidence(state)
    control = most[:, [CONTROL]]
    # Where the control's own interval leaves out its mean, no evidence is needed for a ratio that is wrong.
    every, own = np.arange(state.count), np.full(state.count, CONTROL)
    lost = own_misses(state.instance, state.samples(every, own), state.instance.means[own], levels[own])[:, None]
    found: Bools = (most + control >= goals) | lost
    found &= (state.counts > 0) & (state.counts[:, [CONTROL]] > 0)
    found[:, CONTROL] = False
    rows, arms = np.nonzero(found)
    found[rows, arms] = (most_pair_evidence(state, rows, arms) >= goals[arms]) | lost[rows, 0]
    return found


def most_pair_evidence(state: Runs, runs: Ints, arms: Ints) -> Floats:
    """The log evidence against the true pair of means, in the direction that has more of it; with all tilts and bets."""
    truth, control = state.instance.means, np.full(len(runs), CONTROL)
    arm, base = state.samples(runs, arms), state.samples(runs, control)
    if state.instance.reward.kind == "real":
        return real.log_evidence(arm, truth[arms]) + real.log_evidence(base, truth[control])
    kind, pairs = state.instance.reward.kind, ((arm, truth[arms]), (base, truth[control]))
    return np.maximum(_whole_mixture(kind, *pairs), _whole_mixture(kind, *pairs[::-1]))


def _whole_mixture(kind: RewardKind, high: tuple[Samples, Floats], low: tuple[Samples, Floats]) -> Floats:
    """That of `binary_pairs` or `bounded_pairs`, none of its tilts or bets left out."""
    module = binary_pairs if kind == "binary" else bounded_pairs
    sizes = binary_pairs.TILTS if kind == "binary" else bounded_pairs.BETS
    arms = high, (bounded.mirrored(low[0]), 1.0 - low[1])
    above, below = (_log_wealth(kind, *each, sizes[:, None]) for each in arms)
    above_quarter, below_quarter = (_log_wealth(kind, *each, sizes[:, None] / 4.0) for each in arms)
    parts = [
        above + below + np.log(module.EQUAL),
        above + below_quarter + np.log(module.QUARTER),
        above_quarter + below + np.log(module.QUARTER),
        above + np.log(module.ALONE),
        below + np.log(module.ALONE),
    ]
    terms = np.concatenate([part + np.log(module.WEIGHTS)[:, None] for part in parts])
    found: Floats = np.logaddexp.reduce(terms, axis=0)
    return found


def _log_wealth(kind: RewardKind, arm: Samples, candidates: Floats, sizes: Floats) -> Floats:
    """Of each tilt or bet (first axis) against these means."""
    if kind == "bounded":
        return bounded.log_bet_wealth(bounded.worst_coin(arm), sizes, candidates)
    return sizes * binary.successes(arm) - arm.counts * np.log1p(np.expm1(sizes) * candidates)


def misses(state: Runs, runs: Ints, arms: Ints, levels: Floats) -> tuple[Bools, Bools, Bools]:
    """Does the interval of the difference, or of the ratio, leave out the truth; and is there one of the ratio?"""
    reward, truth, control = state.instance.reward, state.instance.means, np.full(len(runs), CONTROL)
    base = state.samples(runs, control)
    with np.errstate(divide="ignore", invalid="ignore"):
        variances = base.squares / (base.counts - 1.0)
    own = Range(*confidence_intervals(reward, base.counts.astype(np.int64), base.means, variances, levels[control]))
    difference, ratio = tested_ranges(reward, state.samples(runs, arms), base, levels[arms], own)
    gain, quotient = truth[arms] - truth[CONTROL], truth[arms] / truth[CONTROL]
    known = np.isfinite(ratio.lower) & np.isfinite(ratio.upper)
    return outside(difference, gain), known & outside(ratio, quotient), known


def outside(range_: Range, truth: Floats) -> Bools:
    """By more than the rounding of the truth itself."""
    found: Bools = (range_.lower > truth + 1e-12) | (range_.upper < truth - 1e-12)
    return found


def study(instance: Instance, runs: int, draws: int) -> dict[str, object]:
    """One row of the table."""
    levels = arm_levels(np.zeros(ARMS, np.int64), ALPHA)
    differences, ratios = np.zeros(runs, np.bool_), np.zeros(runs, np.bool_)
    looks = closer = 0
    started = time.perf_counter()
    state = None
    for step, (state, _) in enumerate(play(instance, DEFAULT, runs, draws, seed=20_260_117), start=1):
        if step > _EVERY_REWARD_UP_TO and step % _THEN_EVERY:
            continue
        looks += 1
        suspected = suspects(state, levels) & ~(differences & ratios)[:, None]
        rows, arms = np.nonzero(suspected)
        if len(rows):
            closer += len(rows)
            missed, missed_ratio, _ = misses(state, rows, arms, levels)
            differences[rows[missed]] = True
            ratios[rows[missed_ratio]] = True
    assert state is not None  # noqa: S101 - there is at least one draw
    every = np.repeat(np.arange(runs), ARMS - 1), np.tile(np.arange(1, ARMS), runs)
    known = misses(state, *every, levels)[2]
    return {
        "instance": instance.name,
        "kind": instance.reward.kind,
        "policy": DEFAULT.name,
        "runs": runs,
        "draws": draws,
        "looks": looks,
        "alpha": ALPHA,
        "runs_with_a_missed_difference": int(differences.sum()),
        "runs_with_a_missed_ratio": int(ratios.sum()),
        "runs_with_either": int((differences | ratios).sum()),
        "share_with_a_ratio_at_the_end": float(known.mean()),
        "closer_looks": closer,
        "seconds": round(time.perf_counter() - started, 1),
    }


def main() -> None:
    """All instances."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--draws", type=int, default=5000)
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    rows = json.loads(arguments.results.read_text()) if arguments.results.exists() else []
    for instance in cases():
        if any(row["instance"] == instance.name for row in rows):
            continue
        rows.append(study(instance, arguments.runs, arguments.draws))
        print(rows[-1], flush=True)
        arguments.results.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
