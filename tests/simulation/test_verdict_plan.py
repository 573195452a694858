"""What a plan tells."""

from __future__ import annotations

import json

import pytest

from service.domain import RewardSpec
from service.policy.automatic import AutomaticPolicy
from service.simulation.prospect import Prospect
from service.simulation.verdict_plan import QUICK, Draws, Question, duration, expected, plan, rounded, runs_for

PROSPECT = Prospect(
    reward=RewardSpec("binary"),
    policy=AutomaticPolicy(0).resolved("binary", 3),
    means=(0.3, 0.3, 0.4),
    floors=(0.0, 0.0, 0.0),
    worthwhile=0.1,
)


def test_a_plan_tells_the_verdict_the_equals_and_equal_shares() -> None:
    """Decided before separated; equals take longer than a clear winner; days are draws by the traffic; all of it is JSON."""
    told = json.loads(json.dumps(plan(Question(PROSPECT, per_day=500.0, runs=100)).described()))
    assert told["until"] == "decided"
    assert told["draws"] == told["decided"]["draws"]
    assert told["decided"]["draws"]["median"] < told["separated"]["draws"]["median"]
    assert told["decided"]["draws"]["median"] < told["no_difference"]["draws"]["median"]
    assert told["equal_shares"]["draws"]["median"] > 0
    assert told["days"]["median"] == pytest.approx(told["draws"]["median"] / 500.0)
    assert told["draws"]["low"] < told["draws"]["median"] < told["draws"]["high"]
    assert 1 / 3 < told["best_arm"]["share"] < 1.0
    assert told["best_arm"]["found"] >= 0.95
    assert told["summary"].startswith("About ")


def test_the_same_question_has_the_same_answer() -> None:
    """By its seed."""
    question = Question(PROSPECT, runs=40, compared=False)
    assert plan(question).described() == plan(question).described()


def test_progress_goes_from_nothing_to_everything_once() -> None:
    """One bar for all that is played."""
    heard: list[float] = []
    plan(Question(PROSPECT, runs=40), heard.append)
    assert heard == sorted(heard)
    assert heard[-1] == pytest.approx(1.0)


def test_the_sentence_is_plain() -> None:
    """Three digits, the range, and the time at the traffic given."""
    assert expected(Draws(22_481, 14_049, 34_211), 2_000.0) == (
        "About 22,500 visitors (80% of the time between 14,000 and 34,200): 11 days at 2,000 a day"
    )
    assert expected(Draws(950, 700, None), None) == "About 950 visitors (10% of the time fewer than 700)"
    assert expected(Draws(None, None, None), 5.0).startswith("More than a billion")


def test_numbers_and_times_are_those_people_say() -> None:
    """Hours below two days, years from two on."""
    assert [rounded(value) for value in (0.5, 12, 12_345, 1_234_567)] == ["0.5", "12", "12,300", "1,230,000"]
    assert [duration(days) for days in (0.01, 0.05, 1.5, 11.25, 800)] == [
        "less than an hour",
        "1 hour",
        "36 hours",
        "11 days",
        "2.2 years",
    ]


def test_many_arms_have_fewer_runs() -> None:
    """So that a plan of many arms costs about as much as one of few."""
    assert [runs_for(arms) for arms in (2, 20, 100)] == [2_000, 400, 80]
    assert [runs_for(arms, QUICK) for arms in (2, 20, 100)] == [600, 75, 40]
