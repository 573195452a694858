"""How many draws until the leader is separated: under the default, and under what it is compared with by its errors.

    python -m benchmarks.inference_verdict_baselines [--runs 200]

**The plan, written before any figure.** Cases: of `inference_verdicts` two with two arms and binary rewards, three with more, two
with Beta rewards and more than two arms; and two with Gaussian rewards, which it has none of (`CASES`, the longest last).
Policies: what `auto` becomes, the paper's weights (s = 1) with ties by their limit, uniform, and TS-TC, EB-TC and
EB-TC-eps0 as the simulator has them; these suppose unit variance, and with binary rewards they also play with the right one.
For Beta rewards, whose deviation is .16, they have no right one: they take the rewards for six times as noisy as they are.

200 runs each, of their own random numbers in every pair of case and policy. The verdict is the service's own pair test
at alpha = 0.05, looks half a percent apart, as in `inference_verdicts`. A pair ends when seven tenths of its runs have their
verdict, so that medians of runs that are drawn again are known too, or after 400,000 draws: then its median may be unknown.
A trial of 12 runs of the two first cases told only how long it takes: hence no more runs, and no case with nine equal rivals.

*Measure*: the ratio of the medians, the default's to the other's, with a 95% interval (percentile bootstrap over runs, seed
`SEED`); and the geometric mean of the ratios over the cases with such rewards, its interval from the same resamples: it tells
of the chance in runs, not of how other cases would be. Each interval stands for itself, no correction for how many there are.

Writes the draws of every run to docs/inference/verdict_baselines.json after each pair, and goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import zlib
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.inference_instances import Floats, Instance, gaussian
from benchmarks.inference_lockstep import DEFAULT, UNIFORM, Player, play
from benchmarks.inference_verdicts import ALPHA, RESULTS, separated
from benchmarks.inference_verdicts import CASES as KNOWN_CASES
from service.inference.levels import pair_levels
from service.inference.pairs import exceeds
from service.policy.weights import LIMIT

OWN_RESULTS = RESULTS.with_name("verdict_baselines.json")
SEED, RUNS, MOST_DRAWS, RESAMPLES = 43, 200, 400_000, 10_000
_LOOKS, _ENOUGH, _ENDS = 1.005, 0.7, (2.5, 97.5)
_KNOWN = {case.name: case for case in KNOWN_CASES}

CASES = (
    _KNOWN[".5 and .4"],
    _KNOWN[".1 and .08"],
    _KNOWN["Beta, four arms .4 and one .45, deviation .16"],
    _KNOWN["Beta, ten arms .3 to .6, deviation .16"],
    gaussian("Gaussian, four arms 0 and one .3", np.array([0.0] * 4 + [0.3]), np.ones(5)),
    gaussian("Gaussian, ten arms 0 to .9", np.linspace(0.0, 0.9, 10), np.ones(10)),
    _KNOWN["ten arms .03, .05, ..., .19, .25"],
    _KNOWN["four arms .10 and one .13"],
    _KNOWN["four arms .05 and one .06"],
)
BASE = Player("s = 1", "simple_tracking", LIMIT)
EVERYWHERE = (
    DEFAULT,
    BASE,
    UNIFORM,
    Player("TS-TC", "ts_tc"),
    Player("EB-TC", "eb_tc"),
    Player("EB-TC-eps0", "eb_tc_eps0"),
)
RIGHT_VARIANCE = (
    Player("TS-TC, right variance", "ts_tc:binary"),
    Player("EB-TC, right variance", "eb_tc:binary"),
    Player("EB-TC-eps0, right variance", "eb_tc_eps0:binary"),
)


def players_for(instance: Instance) -> tuple[Player, ...]:
    """All policies, and where rewards are binary the baselines with the right variance, too."""
    return (*EVERYWHERE, *(RIGHT_VARIANCE if instance.reward.kind == "binary" else ()))


def waits(instance: Instance, player: Player, runs: int, most_draws: int = MOST_DRAWS) -> tuple[Floats, int]:
    """The draws until each run's verdict, infinite where none came; and how many leaders were wrongly separated."""
    arms = len(instance.means)
    levels = pair_levels(np.zeros(arms, np.int64), np.ones(arms, np.bool_), 0, ALPHA)
    test, when, wrong, look = partial(exceeds, instance.reward), np.full(runs, np.inf), 0, 20
    seed = zlib.crc32(f"{SEED} {instance.name} {player.name}".encode())
    for step, (state, _) in enumerate(play(instance, player, runs, most_draws, seed)):
        if step + 1 < look:
            continue
        look = max(look + 1, int(look * _LOOKS))
        shown = separated(state, np.flatnonzero(np.isinf(when)), test, levels)
        when[shown] = step + 1
        wrong += int((state.leaders()[shown] != instance.means.argmax()).sum())
        if np.isfinite(when).mean() >= _ENOUGH:
            break
    return when, wrong


def medians_of_resamples(draws: Floats, rng: np.random.Generator) -> Floats:
    """The runs' median, and those of the runs drawn again."""
    resampled = np.median(draws[rng.integers(len(draws), size=(RESAMPLES, len(draws)))], axis=1)
    return np.concatenate([[np.median(draws)], resampled])


def ratios(rows: list[dict[str, Any]]) -> dict[str, dict[str, Floats]]:
    """Of every policy and case: the default's median over its own, then the same of every resample."""
    medians: dict[str, dict[str, Floats]] = {}
    for row in rows:
        draws = np.array([np.inf if each is None else each for each in row["draws"]])
        rng = np.random.default_rng([SEED, zlib.crc32(f"{row['case']} {row['policy']}".encode())])
        medians.setdefault(row["policy"], {})[row["case"]] = medians_of_resamples(draws, rng)
    default = medians.pop(DEFAULT.name)
    return {policy: {case: default[case] / found for case, found in cases.items()} for policy, cases in medians.items()}


def with_interval(resampled: Floats) -> tuple[float, float, float]:
    """The ratio and the ends of its interval."""
    low, high = np.percentile(resampled[1:], _ENDS)
    return float(resampled[0]), float(low), float(high)


def together(some: list[Floats]) -> Floats:
    """The geometric mean over cases, in every resample."""
    found: Floats = np.exp(np.log(some).mean(axis=0))
    return found


def main() -> None:
    """All pairs that are not in the results yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--results", type=Path, default=OWN_RESULTS)
    arguments = parser.parse_args()
    rows = json.loads(arguments.results.read_text()) if arguments.results.exists() else []
    done = {(row["case"], row["policy"]) for row in rows}
    for instance in CASES:
        for player in players_for(instance):
            if (instance.name, player.name) in done:
                continue
            draws, wrong = waits(instance, player, arguments.runs)
            known = [None if np.isinf(each) else int(each) for each in draws]
            head = {"case": instance.name, "kind": instance.reward.kind, "policy": player.name, "runs": arguments.runs}
            rows.append({**head, "seed": SEED, "wrong": wrong, "median": float(np.median(draws)), "draws": known})
            print(rows[-1] | {"draws": len(known)}, flush=True)
            arguments.results.write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n")


if __name__ == "__main__":
    main()
