"""The sentence that explains the recommendation."""

from __future__ import annotations

from dataclasses import replace

import pytest

from service.inference.summary import Facts, summary

LEADING = Facts(leader="Green", runner_up="Blue", gap=0.031, active_arms=3, observations=1180, error_estimate=0.08)


def test_it_says_which_arm_by_how_much_and_how_sure() -> None:
    """An undecided experiment."""
    assert summary(LEADING) == (
        "Green leads Blue by 3.1 percentage points after 1,180 rewards, but is not yet separated from the others at 95% "
        "confidence (estimated chance that another arm is better: 8%)."
    )


def test_it_says_when_the_leader_is_separated() -> None:
    """A decided experiment."""
    sentence = summary(replace(LEADING, separated=True, error_estimate=0.0001, confidence=0.99))
    assert "is better than every other active arm with 99% confidence, however often you look" in sentence
    assert "less than 0.1%" in sentence


def test_it_says_that_there_is_nothing_yet() -> None:
    """No reward, one arm, one arm with rewards, a tie."""
    assert summary(Facts(leader=None)) == "No reward has arrived yet, so no arm can be recommended."
    assert "only active arm after 5 rewards" in summary(Facts(leader="A", active_arms=1, observations=5))
    assert "only arm with rewards" in summary(Facts(leader="A", observations=1))
    assert "A and B are level after 2 rewards" in summary(Facts(leader="A", runner_up="B", gap=0.0, observations=2))


@pytest.mark.parametrize(
    ("change", "clause"),
    [
        (replace(LEADING, pending=1), "1 reward still pending may change this"),
        (replace(LEADING, pending=54), "54 rewards still pending may change this"),
        (replace(LEADING, floors=("Grey",)), "Grey keeps a promised share of the traffic"),
        (
            replace(LEADING, disabled=("Red", "Pink")),
            "Red and Pink are disabled and not compared, so the promise is about the active arms only",
        ),
        (
            replace(LEADING, dropped=12),
            "12 draws expired without a reward and left the count, so the promise holds only if silence does not",
        ),
        (replace(LEADING, imputed=3), "3 silent draws count as the reward stated for silence"),
        (replace(LEADING, drift=("Blue",)), "the mean of Blue has changed over time"),
        (replace(LEADING, concluded="Green"), "concluded and serves Green"),
        (replace(LEADING, concluded="Blue"), "serves Blue, which is not the arm that leads now"),
        (replace(LEADING, disabled=("A", "B", "C", "D", "E")), "A, B and 3 others are disabled"),
        (replace(LEADING, goal="minimize"), "by 3.1 percentage points (lower is better)"),
        (replace(LEADING, kind="real", gap=1234567.8), "by 1,234,568 after"),
        (replace(LEADING, kind="real", gap=0.00123456), "by 0.00123 after"),
        (replace(LEADING, kind="bounded", gap=3e20), "by 3e+20 after"),
    ],
)
def test_each_circumstance_has_its_clause(change: Facts, clause: str) -> None:
    """What is pending, what a floor, a disabled arm, lost rewards and drift do, and numbers that people can read."""
    assert clause in summary(change)


def test_it_is_one_sentence() -> None:
    """Whatever comes together."""
    everything = replace(
        LEADING, pending=2, floors=("A",), disabled=("B",), dropped=1, imputed=1, drift=("C",), concluded="Green", separated=True
    )
    sentence = summary(everything)
    assert sentence.endswith(".")
    assert ". " not in sentence
    assert "None" not in sentence
