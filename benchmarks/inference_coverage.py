"""Coverage and false separation under adaptive sampling, with a look after every reward.

    python -m benchmarks.inference_coverage --runs 2000 --draws 5000

For every instance and policy: the share of runs in which any arm's interval ever missed its mean, and in which `separated`
was ever true while another arm was at least as good as the leader; where something is worthwhile, in which `decided` was while
another arm was better by that. Writes docs/inference/coverage.json after each pair of instance and policy, and goes on where it
stopped.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np

from benchmarks.inference_instances import Instance, instances
from benchmarks.inference_lockstep import PLAYERS, Player, Runs, play
from service.inference import binary, bounded, real
from service.inference.levels import arm_levels, pair_levels
from service.inference.pairs import evidence, exceeds
from service.inference.samples import Bools, Floats, Ints, Samples

# When a right separation comes is told to this many draws.
_RIGHT_EVERY = 10
RESULTS = Path(__file__).parent.parent / "docs" / "inference" / "coverage.json"


def study(instance: Instance, player: Player, runs: int, draws: int, alpha: float) -> dict[str, object]:
    """One row of the table."""
    arms = len(instance.means)
    rows = np.arange(runs)
    levels = arm_levels(np.zeros(arms, np.int64), alpha)
    pair_level = pair_levels(np.zeros(arms, np.int64), np.ones(arms, np.bool_), 0, alpha)
    best_rival = np.array([np.delete(instance.means, arm).max() for arm in range(arms)])
    truly_best = instance.means + instance.worthwhile > best_rival
    missed, separated, false = np.zeros(runs, np.bool_), np.zeros(runs, np.bool_), np.zeros(runs, np.bool_)
    separated_at = np.zeros(runs, np.int64)
    started = time.perf_counter()
    for step, (state, drawn) in enumerate(play(instance, player, runs, draws, seed=20_250_101)):
        missed |= misses(instance, state.samples(rows, drawn), instance.means[drawn], levels[drawn])
        leaders = state.leaders()
        # A false separation is looked for after every reward, a right one less often.
        asked = ~false & ~truly_best[leaders] | ~separated & truly_best[leaders] & ((step + 1) % _RIGHT_EVERY == 0)
        open_runs = np.flatnonzero(asked)
        shown = separated_runs(state, open_runs, leaders[open_runs], pair_level)
        wrong = shown[~truly_best[leaders[shown]]]
        right = shown[truly_best[leaders[shown]]]
        false[wrong] = True
        separated[right] = True
        separated_at[right] = step + 1
    when = float(np.median(np.where(separated, separated_at, np.inf)))
    return {
        "instance": instance.name,
        "kind": instance.reward.kind,
        "policy": player.name,
        "worthwhile": instance.worthwhile,
        "runs": runs,
        "draws": draws,
        "alpha": alpha,
        "runs_with_a_miss": int(missed.sum()),
        "runs_with_false_separation": int(false.sum()),
        "runs_rightly_separated": int(separated.sum()),
        "median_draws_to_separation": when if np.isfinite(when) else None,
        "seconds": round(time.perf_counter() - started, 1),
    }


def misses(instance: Instance, sample: Samples, truth: Floats, levels: Floats) -> Bools:
    """Does the interval leave out the true mean: the evidence against it has reached the level. No need to find the bounds.

    For real rewards the log evidence at distance D is at most n^2 D^2 / (2 Q): only distant ones need a closer look.
    """
    if instance.reward.kind == "real":
        left_out = (sample.counts * (sample.means - truth)) ** 2 >= -2.0 * sample.squares * np.log(levels)
        far = np.flatnonzero(left_out)
        left_out[far] = _misses(instance, sample.pick(far), truth[far], levels[far])
        return left_out
    return _misses(instance, sample, truth, levels)


def _misses(instance: Instance, sample: Samples, truth: Floats, levels: Floats) -> Bools:
    """The evidence itself."""
    if instance.reward.kind == "bounded":
        below = bounded.log_wealth(sample, bounded.odds_for(sample, truth), truth)
        mirror = bounded.mirrored(sample)
        above = bounded.log_wealth(mirror, bounded.odds_for(mirror, 1.0 - truth), 1.0 - truth)
        evidence, needed = np.maximum(below, above), np.log(2.0 / levels)
    else:
        method = binary if instance.reward.kind == "binary" else real
        evidence, needed = method.log_evidence(sample, truth), -np.log(levels)
    missed: Bools = evidence >= needed
    return missed


def separated_runs(state: Runs, runs: Ints, leaders: Ints, levels: Floats) -> Ints:
    """The runs in which the leader is shown to beat all others, or not to be worse than any by what is worthwhile.

    The closest rival is asked first.
    """
    if len(runs) == 0:
        return runs
    rivals = np.where(state.counts[runs] > 0, state.means[runs], -np.inf)
    rivals[np.arange(len(runs)), leaders] = -np.inf
    closest = np.argmax(rivals, axis=1)
    high, low = state.samples(runs, leaders), state.samples(runs, closest)
    kept = np.flatnonzero(_shown(state.instance, high, low, levels[closest]))
    for rival in range(state.counts.shape[1]):
        if len(kept) == 0:
            break
        own = leaders[kept] == rival
        opponent = np.full(len(kept), rival)
        high, low = state.samples(runs[kept], leaders[kept]), state.samples(runs[kept], opponent)
        kept = kept[own | _shown(state.instance, high, low, levels[opponent])]
    return runs[kept]


def _shown(instance: Instance, high: Samples, low: Samples, levels: Floats) -> Bools:
    if instance.worthwhile == 0.0:
        return exceeds(instance.reward, high, low, levels)
    shown: Bools = evidence(instance.reward, high, low, levels, instance.worthwhile) >= 1.0
    return shown


def main() -> None:
    """Play every instance under every policy that is not in the results yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--draws", type=int, default=5000)
    parser.add_argument("--alpha", type=float, default=0.05)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--kind", choices=["binary", "bounded", "real"], nargs="*", help="only instances with these rewards")
    parser.add_argument("--policies", nargs="*", help="only these")
    arguments = parser.parse_args()
    rows = json.loads(arguments.results.read_text()) if arguments.results.exists() else []
    done = {(row["instance"], row["policy"]) for row in rows}
    for instance in instances():
        for player in PLAYERS:
            named = arguments.policies is None or player.name in arguments.policies
            wanted = named and (not arguments.kind or instance.reward.kind in arguments.kind)
            if (instance.name, player.name) in done or not wanted:
                continue
            row = study(instance, player, arguments.runs, arguments.draws, arguments.alpha)
            rows.append(row)
            arguments.results.parent.mkdir(parents=True, exist_ok=True)
            arguments.results.write_text(json.dumps(rows, indent=1) + "\n")
            print(row, flush=True)


if __name__ == "__main__":
    main()
