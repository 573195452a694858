"""The sentences that explain the recommendation."""

from __future__ import annotations

from dataclasses import replace

import pytest

from service.inference.lift import Lift
from service.inference.summary import Facts, summary

LEADING = Facts(leader="Green", runner_up="Blue", gap=0.031, active_arms=3, observations=1180, held_up_by="Blue", progress=0.424)
DECIDED = replace(LEADING, state="decided", reason="separated", shown="Green")
LIFT = Lift(0.031, (0.0052, 0.057), 1.2, (1.03, 1.4))


def headline(facts: Facts) -> str:
    """The first sentence, without its stop."""
    return summary(facts).split(". ", maxsplit=1)[0].removesuffix(".")


def test_it_says_who_leads_and_how_far_the_verdict_is() -> None:
    """An undecided experiment."""
    assert summary(LEADING) == (
        "Not yet: Green leads, with 42% of the evidence that a verdict takes. "
        "Green leads Blue by 3.1 percentage points after 1,180 rewards."
    )
    assert summary(replace(LEADING, held_up_by="Red")).endswith("; the rival that holds the verdict up is Red.")


def test_it_says_when_one_may_stop_and_why() -> None:
    """Separated, nothing worthwhile left, the control beaten."""
    assert headline(DECIDED) == "You may stop with Green: it is better than every other active arm, with 95% confidence"
    enough = replace(DECIDED, reason="nothing_worthwhile", worthwhile=0.01, confidence=0.99)
    assert headline(enough) == (
        "You may stop with Green: no other active arm is better by more than 1 percentage point, with 99% confidence"
    )
    beats = replace(DECIDED, reason="beats_control", control="Grey")
    assert headline(beats) == "You may stop with Green: it is better than Grey, the control, with 95% confidence"


def test_what_was_shown_stands_when_another_arm_leads() -> None:
    """The arm to take is named first, and who leads now after it."""
    sentences = summary(replace(DECIDED, shown="Blue"))
    assert sentences.startswith("You may stop with Blue: it is better than every other active arm, with 95% confidence.")
    assert sentences.endswith("Green leads Blue now by 3.1 percentage points after 1,180 rewards.")


def test_it_says_how_much_was_imported() -> None:
    """In its number; nothing where nothing was."""
    assert summary(replace(LEADING, imported=1000)).endswith(" 1,000 of the 1,180 rewards were imported (told without an ask).")
    assert summary(replace(LEADING, imported=1)).endswith(" 1 of the 1,180 rewards was imported (told without an ask).")
    assert "imported" not in summary(LEADING)


def test_it_says_that_there_is_nothing_yet() -> None:
    """No reward, one arm, one arm with rewards, few rewards, a tie."""
    assert summary(Facts(leader=None, state="collecting")) == "No reward has arrived yet, so no arm can be recommended."
    alone = Facts(leader="A", active_arms=1, observations=5, state="collecting")
    assert summary(alone) == "A is the only active arm, after 5 rewards, so there is nothing to compare."
    first = Facts(leader="A", observations=1, state="collecting")
    assert summary(first) == "Too little to say yet: A is the only arm with rewards, after 1 reward."
    few = Facts(leader="A", runner_up="B", gap=1.0, observations=3, state="collecting")
    assert headline(few) == "Too little to say yet: not every active arm has two rewards"
    assert "A and B are level after 2 rewards." in summary(Facts(leader="A", runner_up="B", gap=0.0, observations=2))


def test_a_loser_that_is_served_is_called_one() -> None:
    """Nothing that was shown of the best arm is said of the one that is served."""
    served = replace(DECIDED, state="concluded", concluded="Blue", behind=0.031)
    assert summary(served) == (
        "The experiment is concluded and serves Blue, whose mean is 3.1 percentage points behind Green's, the best. "
        "It is shown that Green is better than every other active arm, with 95% confidence."
    )
    level = replace(served, behind=0.0)
    assert headline(level).endswith("serves Blue, whose mean is level with Green's, the best")
    assert headline(replace(served, behind=None)) == "The experiment is concluded and serves Blue"
    assert headline(replace(served, concluded="Green", behind=0.0)).endswith("serves Green, the arm with the best mean")


def test_a_conclusion_without_a_verdict_says_so() -> None:
    """And one that rests on what is worthwhile says that."""
    early = replace(LEADING, state="concluded", concluded="Green", behind=0.0)
    assert summary(early).endswith("No arm is shown to be better than every other active arm, with 95% confidence.")
    enough = replace(early, reason="nothing_worthwhile", shown="Blue", worthwhile=0.02)
    assert "Blue could be taken: no other active arm is better by more than 2 percentage points" in summary(enough)


def test_the_control_comes_right_after_the_verdict() -> None:
    """With the interval of the difference, or without while there is none; harm follows."""
    facts = replace(DECIDED, control="Grey", lift=LIFT, harmful=("Red",))
    assert summary(facts).split(". ")[1:3] == [
        (
            "Against Grey, the control, Green is better by 3.1 percentage points "
            "(the difference lies between +0.52 and +5.7 percentage points, with 95% confidence)"
        ),
        "Red is shown to be worse than Grey, the control",
    ]
    assert "than Grey, the control, by more than 2 percentage points" in summary(replace(facts, worthwhile=0.02))
    assert "Green is better by 3.1 percentage points." in summary(replace(facts, lift=replace(LIFT, difference_interval=None)))
    assert "Green is worse by 3.1 percentage points" in summary(replace(facts, goal="minimize"))
    assert "Green is level (" in summary(replace(facts, lift=replace(LIFT, difference=0.0)))
    assert "Green is the control, what is live today." in summary(replace(facts, control="Green"))
    loser = replace(facts, state="concluded", concluded="Blue", lift=replace(LIFT, difference=-0.04))
    assert "Against Grey, the control, Blue is worse by 4 percentage points" in summary(loser)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (replace(LEADING, pending=1), "1 reward still pending may change this."),
        (replace(LEADING, pending=54), "54 rewards still pending may change this."),
        (replace(DECIDED, pending=54), "54 rewards are still pending."),
        (replace(LEADING, floors=("Grey",)), "Grey keeps a promised share of the traffic"),
        (
            replace(LEADING, disabled=("Red", "Pink")),
            "Red and Pink are disabled and not compared, so the promise is about the active arms only.",
        ),
        (
            replace(LEADING, dropped=12),
            "12 draws expired without a reward and left the count, so the promise holds only if silence does not",
        ),
        (replace(LEADING, imputed=3), "3 silent draws count as the reward stated for silence."),
        (replace(LEADING, drift=("Blue",)), "The mean of Blue has changed over time"),
        (replace(LEADING, disabled=("A", "B", "C", "D", "E")), "A, B and 3 others are disabled"),
        (replace(LEADING, goal="minimize"), "by 3.1 percentage points (lower is better)"),
        (replace(LEADING, kind="real", gap=1234567.8), "by 1,234,568 after"),
        (replace(LEADING, kind="real", gap=0.00123456), "by 0.00123 after"),
        (replace(LEADING, kind="bounded", gap=3e20), "by 3e+20 after"),
    ],
)
def test_each_circumstance_has_its_sentence(change: Facts, sentence: str) -> None:
    """What is pending, what a floor, a disabled arm, lost rewards and drift do, and numbers that people can read."""
    assert sentence in summary(change)


@pytest.mark.parametrize("facts", [LEADING, DECIDED, replace(DECIDED, state="concluded", concluded="Blue", behind=0.1)])
def test_whatever_comes_together_is_whole_sentences(facts: Facts) -> None:
    """Each begins with a capital or a number, and none speaks of nothing."""
    everything = replace(
        facts, pending=2, floors=("A",), disabled=("B",), dropped=1, imputed=1, drift=("C",), control="Grey", lift=LIFT
    )
    sentences = summary(everything)
    assert sentences.endswith(".")
    assert "None" not in sentences
    assert all(one[0].isupper() or one[0].isdigit() for one in sentences.split(". "))
