"""How near a plan comes: the median draws to the verdict by `bestarm plan` against experiments played draw by draw.

    python -m benchmarks.plan_accuracy

Twelve settings: kinds of rewards, numbers of arms, lifts, floors, delays, an expiry, something worthwhile. The experiments of
`make demo` are added with their own policies; Almost Tracking is played by the service's policy object, which takes longer.
Writes the results after each setting; `within` is the largest that a plan may be off, in parts.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from benchmarks import plan_reference
from benchmarks.plan_demo import demo_prospects, play_served
from benchmarks.plan_reference import Ends
from service.domain import RewardSpec
from service.policy.automatic import AutomaticPolicy
from service.simulation.prospect import Prospect, lifted_means
from service.simulation.verdict_plan import QUICK, THOROUGH, Question, plan, runs_for

RESULTS = Path(__file__).parent / "results" / "plan_accuracy.json"
WITHIN = 0.15
Row: TypeAlias = dict[str, Any]
_BINARY, _REAL, _BOUNDED = RewardSpec("binary"), RewardSpec("real"), RewardSpec("bounded", minimum=0.0, maximum=10.0)


@dataclass(frozen=True, slots=True)
class Setting:
    """One experiment to plan."""

    name: str
    prospect: Prospect
    most: int
    """Draws after which a run is given up: many times the median."""


def _lifted(reward: RewardSpec, arms: int, baseline: float, lift: float, deviation: float = 0.0) -> Prospect:
    return Prospect(
        reward=reward,
        policy=AutomaticPolicy(0).resolved(reward.kind, arms),
        means=lifted_means(reward, arms, baseline, lift),
        deviation=deviation,
        floors=(0.0,) * arms,
    )


def settings() -> list[Setting]:
    """The twelve."""
    five = _lifted(_BINARY, 5, 0.10, 0.03)
    return [
        Setting("binary, 2 arms, 10% and 2 points", _lifted(_BINARY, 2, 0.10, 0.02), 200_000),
        Setting("binary, 2 arms, 50% and 5 points", _lifted(_BINARY, 2, 0.50, 0.05), 60_000),
        Setting("binary, 5 arms, 10% and 3 points", five, 200_000),
        Setting("the same, floors of 10%", replace(five, floors=(0.1,) * 5), 200_000),
        Setting("the same, rewards 5,000 draws late", replace(five, delay=5_000), 200_000),
        Setting("the same, silence is 0 after 4,000 draws", replace(five, delay=500, window=4_000, silence=0.0), 200_000),
        Setting("the same, 3 points are worthwhile", replace(five, worthwhile=0.03), 200_000),
        Setting("the same, 3 points are worthwhile, all equal", replace(five, worthwhile=0.03).among_equals(), 200_000),
        Setting("binary, 20 arms, 2% and 2 points", _lifted(_BINARY, 20, 0.02, 0.02), 400_000),
        Setting("real, 5 arms, 0.3 deviations", _lifted(_REAL, 5, 0.0, 0.3, 1.0), 40_000),
        Setting("real, 50 arms, 0.5 deviations", _lifted(_REAL, 50, 0.0, 0.5, 1.0), 100_000),
        Setting("bounded 0 to 10, 3 arms, 4 and 0.5", _lifted(_BOUNDED, 3, 4.0, 0.5, 2.0), 60_000),
    ]


def played_row(setting: Setting, runs: int, played: Callable[[Setting, int], Ends]) -> Row:
    """What happens, draw by draw."""
    began = time.process_time()
    ends = played(setting, runs)
    waits = ends.separated if setting.prospect.worthwhile is None else ends.decided
    low, median, high = (float(np.quantile(waits, part)) for part in (0.1, 0.5, 0.9))
    seconds = round(time.process_time() - began, 1)
    return {
        "setting": setting.name,
        "runs": runs,
        "draws": _whole(median),
        "low": _whole(low),
        "high": _whole(high),
        "seconds": seconds,
    }


def planned_row(setting: Setting, played: Row) -> Row:
    """The same with what the plans say."""
    prospect, row = setting.prospect, dict(played)
    for name, effort in (("plan", THOROUGH), ("form", QUICK)):
        began = time.process_time()
        question = Question(prospect, runs=runs_for(len(prospect.means), effort), step=effort.step, compared=False)
        found = plan(question).verdict
        row[name] = {
            "draws": found.median,
            "low": found.low,
            "high": found.high,
            "runs": question.runs,
            "ratio": None if found.median is None else round(found.median / played["draws"], 3),
            "seconds": round(time.process_time() - began, 2),
        }
    return row


def _whole(value: float) -> int | None:
    return int(value) if np.isfinite(value) else None


def _compiled(setting: Setting, runs: int) -> Ends:
    until_separated = setting.prospect.worthwhile is None
    return plan_reference.play(setting.prospect, runs, setting.most, seed=17, until_separated=until_separated)


def _served(setting: Setting, runs: int) -> Ends:
    return play_served(setting.prospect, runs, setting.most, seed=17)


def main() -> None:
    """All settings, then the demo's."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=4_000, help="times arms; 200 to 1,600 runs")
    parser.add_argument("--demo-runs", type=int, default=120)
    parser.add_argument("--plans-only", action="store_true", help="keep what was played before, and plan anew")
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    kept = {row["setting"]: row for row in json.loads(arguments.out.read_text())["settings"]} if arguments.plans_only else {}
    rows: list[Row] = []
    jobs = [(one, max(200, min(1_600, arguments.runs // len(one.prospect.means))), _compiled) for one in settings()]
    for name, prospect in demo_prospects().items():
        compiled = prospect.policy.kind != "almost_tracking"
        runs = 4 * arguments.demo_runs if compiled else arguments.demo_runs
        jobs.append((Setting(name, prospect, 200_000), runs, _compiled if compiled else _served))
    for setting, runs, played in jobs:
        rows.append(planned_row(setting, kept.get(setting.name) or played_row(setting, runs, played)))
        print(rows[-1], flush=True)
        arguments.out.write_text(json.dumps({"within": WITHIN, "settings": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
