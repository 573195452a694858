"""The plan of an experiment: how many draws until its verdict, by playing it many times before it runs.

`bestarm plan` and the form for new experiments ask here. The verdict is `separated`, or `decided` where something is said to be
worthwhile: then the plan also tells how long it takes to find out that no arm is better. How near it comes to experiments that
are played draw by draw is in docs/planning.md.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from service.domain import PolicySpec
from service.simulation.verdict_runs import VerdictRuns

if TYPE_CHECKING:
    from collections.abc import Callable

    from service.inference.samples import Floats
    from service.simulation.prospect import Prospect

SEED = 20260
# The fewest whose middle is worth telling.
_FEWEST_RUNS = 40
_LOW, _MIDDLE, _HIGH = 0.1, 0.5, 0.9
_HOURS_A_DAY = 24
# A difference below this part is that of two simulations.
_WORTH_TELLING = 0.05
_POLICY_NAMES = {
    "simple_tracking": "Simple Tracking sends most traffic to the arms that are hardest to tell from the best",
    "almost_tracking": "Almost Tracking plans in batches, with most traffic to the arms that are hardest to tell from the best",
    "uniform": "Uniform gives every arm the same share",
}


class Effort(NamedTuple):
    """How much a plan may cost."""

    rows: int
    """Runs times arms."""
    most_runs: int
    step: float
    """In parts of the draws so far."""


THOROUGH = Effort(8_000, 2_000, 0.05)
QUICK = Effort(1_500, 600, 0.1)
"""For somebody who waits while typing."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is to be planned, and how thoroughly."""

    prospect: Prospect
    per_day: float | None = None
    """Draws a day."""
    runs: int = 400
    seed: int = SEED
    step: float = THOROUGH.step
    compared: bool = True
    """Is it also told how long equal shares would take?"""


@dataclass(frozen=True, slots=True)
class Draws:
    """The middle of the runs, and between what 80% of them ended. None: more than anyone waits for."""

    median: int | None
    low: int | None
    high: int | None


@dataclass(frozen=True, slots=True)
class VerdictPlan:
    """What to expect."""

    question: Question
    separated: Draws | None
    """None where no arm is better than all others."""
    decided: Draws | None
    """None where nothing is said to be worthwhile."""
    equal: Draws | None
    """Until it is decided if no arm is better than another."""
    uniform: Draws | None
    """Until the verdict with equal shares."""
    share: float | None
    """The best arm's part of the draws until the verdict."""
    found: float | None
    """How often the verdict was for the best arm."""

    @property
    def verdict(self) -> Draws:
        """Of the two the one that the experiment is planned for."""
        return self.decided or self.separated or Draws(None, None, None)

    def days(self, draws: Draws) -> dict[str, float | None] | None:
        """So many draws at the question's traffic; None where that is not known."""
        rate = self.question.per_day
        return None if rate is None else {name: None if some is None else some / rate for name, some in asdict(draws).items()}

    def described(self) -> dict[str, Any]:
        """What a client reads of the plan."""
        shown = {name: self._both(draws) for name, draws in (("separated", self.separated), ("decided", self.decided))}
        return {
            "until": "separated" if self.decided is None else "decided",
            **self._both(self.verdict),  # type: ignore[dict-item] # there is a verdict
            **shown,
            "no_difference": self._both(self.equal),
            "equal_shares": self._both(self.uniform),
            "best_arm": {"share": self.share, "found": self.found},
            "per_day": self.question.per_day,
            "policy_summary": self.policy_sentence(),
            "policy": {name: value for name, value in asdict(self.question.prospect.policy).items() if name != "seed"},
            "runs": self.question.runs,
        }

    def _both(self, draws: Draws | None) -> dict[str, Any] | None:
        if draws is None:
            return None
        return {"summary": expected(draws, self.question.per_day) + ".", "draws": asdict(draws), "days": self.days(draws)}

    def sentence(self) -> str:
        """The answer in one sentence."""
        return expected(self.verdict, self.question.per_day) + "."

    def policy_sentence(self) -> str:
        """Which policy, and what it saves against equal shares."""
        named = _POLICY_NAMES[self.question.prospect.policy.kind]
        if self.uniform is None or self.uniform.median is None or self.verdict.median is None:
            return f"{named}."
        saved = 1.0 - self.verdict.median / self.uniform.median
        if saved < _WORTH_TELLING:
            return f"{named}: about as long as equal shares would take ({rounded(self.uniform.median)} visitors)."
        return f"{named}: {saved:.0%} sooner than equal shares, which would take {rounded(self.uniform.median)} visitors."


def runs_for(arms: int, effort: Effort = THOROUGH) -> int:
    """With many arms there are fewer runs, so that a plan costs about the same."""
    return max(_FEWEST_RUNS, min(effort.most_runs, effort.rows // arms))


def plan(question: Question, moved: Callable[[float], None] = lambda _: None) -> VerdictPlan:
    """The answer; `moved` is told how much of the work is done, from 0 to 1."""
    prospect = question.prospect
    judged = prospect.worthwhile is not None
    compares = question.compared and len(prospect.means) > 2 and prospect.policy.kind != "uniform"  # noqa: PLR2004 - two share alike
    wanted = [prospect]
    if judged and prospect.has_best:
        wanted.append(prospect.among_equals())
    if compares:
        wanted.append(replace(prospect, policy=PolicySpec("uniform", keeps_floors=True)))
    played = []
    for place, one in enumerate(wanted):
        # Among equals the leader changes all the time, and a verdict hangs on the moment: shorter steps.
        step = question.step if one.has_best else question.step / 2.0
        runs = VerdictRuns(one, question.runs, np.random.default_rng([question.seed, place]), step)
        # Equals never separate; for the comparison only the verdict matters.
        thorough = one.has_best and (place == 0 or not judged)
        runs.play(until_separated=thorough, enough=_HIGH, moved=lambda part, done=place: moved((done + part) / len(wanted)))  # type: ignore[misc]
        played.append(runs)
    main = played[0].decided if judged else played[0].separated
    over = np.isfinite(main.draws)
    return VerdictPlan(
        question,
        separated=_quantiles(played[0].separated.draws) if prospect.has_best else None,
        decided=_quantiles(played[0].decided.draws) if judged else None,
        equal=_quantiles(played[1].decided.draws) if judged and prospect.has_best else None,
        uniform=_quantiles((played[-1].decided if judged else played[-1].separated).draws) if compares else None,
        share=float(main.share[over].mean()) if prospect.has_best and over.any() else None,
        found=float(main.right[over].mean()) if prospect.has_best and over.any() else None,
    )


def _quantiles(waits: Floats) -> Draws:
    ordered = np.sort(waits)
    places = [ordered[int(np.ceil(part * len(ordered))) - 1] for part in (_LOW, _MIDDLE, _HIGH)]
    low, median, high = (None if np.isinf(wait) else int(wait) for wait in places)
    return Draws(median, low, high)


def expected(draws: Draws, per_day: float | None) -> str:
    """So many visitors, and how long that takes."""
    if draws.median is None:
        return "More than a billion visitors: longer than anyone waits"
    if draws.low is None or draws.high is None:
        spread = f"(10% of the time fewer than {rounded(draws.low)})" if draws.low else ""
    else:
        spread = f"(80% of the time between {rounded(draws.low)} and {rounded(draws.high)})"
    visitors = f"About {rounded(draws.median)} visitors {spread}".rstrip()
    return visitors if per_day is None else f"{visitors}: {duration(draws.median / per_day)} at {rounded(per_day)} a day"


def rounded(value: float) -> str:
    """A figure for people: three digits of it mean something."""
    digits = 2 - int(np.floor(np.log10(abs(value)))) if value else 0
    return f"{round(value, digits):,.{max(0, digits)}f}" if digits <= 0 else f"{round(value, digits):,g}"


def duration(days: float) -> str:
    """In the unit that people would use."""
    for size, unit in ((730.0, "year"), (2.0, "day"), (0.0, "hour")):
        if days >= size:
            many = {"year": days / 365.0, "day": days, "hour": days * _HOURS_A_DAY}[unit]
            if unit == "hour" and many < 1.0:
                return "less than an hour"
            shown = f"{many:,.1f}" if unit == "year" else f"{round(many):,}"
            return f"{shown} {unit}" if shown == "1" else f"{shown} {unit}s"
    raise AssertionError
