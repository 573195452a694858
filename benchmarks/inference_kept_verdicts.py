"""Verdicts that are kept: over many experiments, is one ever taken back, and how often is it wrong?

    python -m benchmarks.inference_kept_verdicts --runs 1000

Experiments under the default policy are looked at as the service's own watch does: whenever the history, of a draw and a reward
each, has grown by a hundredth since the last look. What is shown then is kept, by the service's own code. A verdict is taken
back when a look finds a decided experiment undecided; the one cause that can occur here, because nothing is corrected, voided or
changed, is that the contrary was shown. Beside it: how often the arm changed (good enough, and then the best), and how often
the verdict would have gone back had nothing been kept. Writes docs/inference/kept_verdicts.json after each case, and goes on
where it stopped.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from benchmarks.inference_instances import Instance, Ints, bernoulli, beta, gaussian
from benchmarks.inference_lockstep import DEFAULT, Runs, play
from service.application.commands.verdict_watch import GROWTH
from service.domain import Arm, Experiment, PolicySpec, RewardSpec
from service.domain.findings import Finding
from service.inference.certainty import Certainty
from service.inference.levels import pair_levels
from service.inference.pairs import evidence
from service.inference.samples import Bools
from service.inference.verdict import new_findings, verdict

RESULTS = Path(__file__).parent.parent / "docs" / "inference" / "kept_verdicts.json"
CONFIDENCE = 0.95
_ROUNDING = 1e-12
_MADE = Experiment(1, "e", "E", "", PolicySpec(), RewardSpec(), None, False, CONFIDENCE, None, "running", None, 0)


@dataclass(frozen=True, slots=True)
class Case:
    """An instance, and the difference that matters in it."""

    instance: Instance
    worthwhile: float | None = None

    def is_wrong(self, arm: int) -> bool:
        """Is another arm at least as good, or better by what is worthwhile?"""
        others = np.delete(self.instance.means, arm).max() - self.instance.means[arm]
        return bool(others >= (self.worthwhile or 0.0) - _ROUNDING)


def cases() -> list[Case]:
    """Equal arms, a best one, and arms of which none is worth waiting for."""
    ones, one_better = np.ones(5), np.array([0.0, 0.0, 0.0, 0.0, 1.0])
    return [
        Case(bernoulli("binary, five arms .3", 0.3 * ones)),
        Case(bernoulli("binary, four arms .3 and one .4", 0.3 + 0.1 * one_better)),
        Case(bernoulli("binary, .30 and .35, worthwhile .05", np.array([0.30, 0.35])), 0.05),
        Case(beta("bounded, four arms Beta(2, 4) and one Beta(2.4, 3.6)", 2.0 + 0.4 * one_better, 4.0 - 0.4 * one_better)),
        Case(gaussian("Gaussian, one better by .3 deviations", 0.3 * one_better, ones)),
    ]


@dataclass(slots=True)
class Kept:
    """One experiment over its looks."""

    findings: list[Finding] = field(default_factory=list)
    decided: int | None = None
    """The arm of the last verdict."""
    ever: set[int] = field(default_factory=set)
    back: bool = False
    """It was decided, and then not."""
    changed: bool = False
    """It was decided, and then for another arm."""
    contradicted: bool = False
    shown: bool = False
    """By the present look alone."""
    flickered: bool = False


def certainties(state: Runs, case: Case, leaders: Ints) -> list[Certainty]:
    """What each experiment's look sees, as far as a verdict needs it: the evidence against all rivals."""
    runs, arms = state.counts.shape
    pairs, rivals = np.repeat(np.arange(runs), arms), np.tile(np.arange(arms), runs)
    own = leaders[pairs]
    levels = pair_levels(np.zeros(arms, np.int64), np.ones(arms, np.bool_), 0, 1.0 - CONFIDENCE)[rivals]
    high, low = state.samples(pairs, own), state.samples(pairs, rivals)
    parts = evidence(state.instance.reward, high, low, levels).reshape(runs, arms)
    others = (rivals != own).reshape(runs, arms)
    separated: Bools = (~others | (parts >= 1.0)).all(axis=1)
    decided: Bools = separated.copy()
    if case.worthwhile is not None:
        enough = evidence(state.instance.reward, high, low, levels, case.worthwhile).reshape(runs, arms) >= 1.0
        decided |= (~others | enough).all(axis=1)
    known = [
        [part if other else None for part, other in zip(*row, strict=True)] for row in zip(parts.tolist(), others, strict=True)
    ]
    nothing: list[None] = [None] * arms
    return [
        Certainty([], known[run], bool(separated[run]), bool(decided[run]), None, state.counts[run].tolist(), [*nothing])
        for run in range(runs)
    ]


def look(kept: Kept, experiment: Experiment, arms: list[Arm], sure: Certainty, *, leader: int, version: int) -> None:
    """Keep what is shown, and compare the verdict with the last."""
    new = new_findings(experiment, arms, sure, leader, kept.findings)
    kept.findings += [Finding(one.kind, one.better, one.worse, one.evidence, one.level, version, version) for one in new]
    found = verdict(experiment, arms, sure, leader, kept.findings)
    kept.contradicted |= bool(found.contradicted)
    arm = found.arm if found.state == "decided" else None
    if kept.decided is not None and not found.contradicted:
        kept.back |= arm is None
        kept.changed |= arm not in (None, kept.decided)
    kept.flickered |= kept.shown and not sure.decided
    kept.shown = sure.decided
    kept.decided = arm
    if arm is not None:
        kept.ever.add(arm)


def study(case: Case, runs: int, draws: int) -> dict[str, object]:
    """One row of the table."""
    started = time.perf_counter()
    experiment = replace(_MADE, reward=case.instance.reward, worthwhile=case.worthwhile)
    arms = [Arm(position, f"a{position}", f"A{position}", None) for position in range(len(case.instance.means))]
    experiments = [Kept() for _ in range(runs)]
    looked_at = looks = 0
    for step, (state, _) in enumerate(play(case.instance, DEFAULT, runs, draws, seed=17), start=1):
        version = 1 + 2 * step
        if step < len(arms) or version - looked_at < GROWTH * looked_at:
            continue
        looked_at, looks = version, looks + 1
        leaders = state.leaders()
        for kept, sure, leader in zip(experiments, certainties(state, case, leaders), leaders.tolist(), strict=True):
            look(kept, experiment, arms, sure, leader=leader, version=version)
    return {
        "case": case.instance.name,
        "kind": case.instance.reward.kind,
        "policy": DEFAULT.name,
        "runs": runs,
        "draws": draws,
        "looks": looks,
        "confidence": CONFIDENCE,
        "decided": sum(bool(one.ever) for one in experiments),
        "wrong": sum(any(case.is_wrong(arm) for arm in one.ever) for one in experiments),
        "taken_back": sum(one.back for one in experiments),
        "changed_arm": sum(one.changed for one in experiments),
        "contradicted": sum(one.contradicted for one in experiments),
        "would_have_gone_back": sum(one.flickered for one in experiments),
        "seconds": round(time.perf_counter() - started, 1),
    }


def main() -> None:
    """All cases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--draws", type=int, default=6000)
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    rows = json.loads(arguments.results.read_text()) if arguments.results.exists() else []
    for case in cases():
        if any(row["case"] == case.instance.name for row in rows):
            continue
        rows.append(study(case, arguments.runs, arguments.draws))
        print(rows[-1], flush=True)
        arguments.results.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
