"""The verdict, from what is shown now and what was found before."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from service.domain import Arm, ArmStatistics, ConcludeWhen, Experiment, PolicySpec, RewardSpec
from service.domain.findings import Finding
from service.exact import Moments
from service.inference.certainty import certainty_of, leader_of
from service.inference.verdict import Verdict, new_findings, verdict

_EXPERIMENT = Experiment(1, "e", "E", "", PolicySpec(), RewardSpec(), None, False, 0.95, None, "running", None, 0)


def arms(number: int) -> list[Arm]:
    """Active arms."""
    return [Arm(position, f"a{position}", f"A{position}", None) for position in range(number)]


def statistics(*shares: tuple[int, int]) -> list[ArmStatistics]:
    """Arms with so many successes among so many rewards."""
    made = []
    for successes, count in shares:
        moments = Moments().with_reward(1.0, successes).with_reward(0.0, count - successes)
        made.append(ArmStatistics(observed=moments, matured=moments))
    return made


def judged(
    experiment: Experiment, there: list[Arm], known: list[ArmStatistics], kept: tuple[Finding, ...] = ()
) -> tuple[Verdict, list[Finding]]:
    """The verdict, and what is found."""
    leader = leader_of(experiment.reward, there, known)
    sure = certainty_of(experiment, there, known, leader)
    return verdict(experiment, there, sure, leader, kept), new_findings(experiment, there, sure, leader, kept)


def test_without_rewards_it_is_collecting() -> None:
    """Until every active arm has two rewards there is too little to say."""
    for known in (statistics((0, 0), (0, 0)), statistics((3, 5), (1, 1))):
        found, findings = judged(_EXPERIMENT, arms(2), known)
        assert (found.state, found.reason, found.arm, found.since) == ("collecting", None, None, None)
        assert findings == []


def test_a_leader_has_progress_and_a_rival_that_holds_it_up() -> None:
    """The least evidence, and whose."""
    found, findings = judged(_EXPERIMENT, arms(3), statistics((60, 100), (40, 100), (5, 100)))
    assert (found.state, found.held_up_by, found.arm) == ("leading", 1, None)
    assert 0.0 < found.progress < 1.0
    assert [(one.kind, one.better, one.worse) for one in findings] == [("separated", 0, 2)]
    assert found.out == {2}


def test_a_separated_leader_is_decided() -> None:
    """Now, so there is no time yet; kept, since the last of its findings."""
    known = statistics((90, 100), (10, 100), (12, 100))
    found, findings = judged(_EXPERIMENT, arms(3), known)
    assert (found.state, found.reason, found.arm, found.progress, found.since) == ("decided", "separated", 0, 1.0, None)
    kept = tuple(
        Finding(one.kind, one.better, one.worse, 9.0, 0.01, sequence=place, at=place) for place, one in enumerate(findings, 5)
    )
    found, findings = judged(_EXPERIMENT, arms(3), known, kept)
    assert (found.separated_at, found.since, findings) == (6, 6, [])


def test_findings_of_several_looks_and_leaders_add_up() -> None:
    """Arm 2 was shown to be below 1, and 1 to be below 0: nobody but 0 can be the best, whatever the rewards say now."""
    kept = (Finding("separated", 1, 2, 9.0, 0.01, 5, 50), Finding("separated", 0, 1, 9.0, 0.01, 6, 60))
    found, _ = judged(_EXPERIMENT, arms(3), statistics((50, 100), (49, 100), (51, 100)), kept)
    assert (found.state, found.reason, found.arm, found.separated_at) == ("decided", "separated", 0, 60)


def test_a_kept_verdict_does_not_flicker() -> None:
    """What was separated stays so with rewards that would not show it."""
    kept = (Finding("separated", 0, 1, 9.0, 0.01, 5, 50),)
    found, _ = judged(_EXPERIMENT, arms(2), statistics((52, 100), (50, 100)), kept)
    assert (found.state, found.separated, found.progress, found.since) == ("decided", True, 1.0, 50)


def test_the_contrary_is_drift() -> None:
    """An arm that was shown to be worse and is now shown to be better: no verdict, both named."""
    kept = (Finding("separated", 1, 0, 9.0, 0.01, 5, 50),)
    found, _ = judged(_EXPERIMENT, arms(2), statistics((90, 100), (10, 100)), kept)
    assert found.contradicted == {0, 1}
    assert (found.state, found.separated) == ("leading", False)


def test_a_finding_by_a_disabled_arm_does_not_count() -> None:
    """Better than an active arm must be an active arm."""
    there = arms(3)
    there[0] = replace(there[0], status="disabled")
    kept = (Finding("separated", 0, 1, 9.0, 0.01, 5, 50), Finding("separated", 0, 2, 9.0, 0.01, 6, 60))
    found, _ = judged(_EXPERIMENT, there, statistics((0, 0), (50, 100), (49, 100)), kept)
    assert (found.state, found.out) == ("leading", frozenset())


def test_nothing_worthwhile_is_left() -> None:
    """Two equal arms are decided when neither can be better by what matters; kept when it no longer shows."""
    experiment = replace(_EXPERIMENT, worthwhile=0.2)
    found, findings = judged(experiment, arms(2), statistics((500, 1000), (500, 1000)))
    assert (found.state, found.reason, found.decided, found.separated) == ("decided", "nothing_worthwhile", True, False)
    assert [(one.kind, one.better, one.worse) for one in findings] == [("nothing_worthwhile", found.arm, None)]
    kept = (Finding("nothing_worthwhile", 1, None, 9.0, 0.01, 5, 50),)
    found, _ = judged(experiment, arms(2), statistics((6, 10), (4, 10)), kept)
    assert (found.state, found.arm, found.since) == ("decided", 1, 50)


def test_the_control_makes_arms_harmful_and_beaten() -> None:
    """Worse than the control is harmful; by less than what is worthwhile it is not."""
    experiment = replace(_EXPERIMENT, control=0)
    known = statistics((500, 1000), (300, 1000), (700, 1000))
    found, findings = judged(experiment, arms(3), known)
    assert found.harmful == {1}
    assert {(one.kind, one.better, one.worse) for one in findings} >= {("harmful", 0, 1), ("beats_control", 2, 0)}
    found, _ = judged(replace(experiment, worthwhile=0.3), arms(3), known)
    assert found.harmful == frozenset()
    found, _ = judged(replace(experiment, reward=RewardSpec(goal="minimize")), arms(3), known)
    assert found.harmful == {2}


@pytest.mark.parametrize("goal", ["maximize", "minimize"])
def test_harm_is_what_is_worse_by_more_than_what_is_worthwhile(goal: str) -> None:
    """In either direction: an arm that is certainly worse, by less than that, is not harmful."""
    reward = RewardSpec(goal=goal)  # type: ignore[arg-type]  # one of its words
    experiment = replace(_EXPERIMENT, control=0, reward=reward)
    worse, far_worse = ((400, 1000), (100, 1000)) if goal == "maximize" else ((600, 1000), (900, 1000))
    known = statistics((500, 1000), worse, far_worse)
    assert judged(experiment, arms(3), known)[0].harmful == {1, 2}
    found, findings = judged(replace(experiment, worthwhile=0.2), arms(3), known)
    assert found.harmful == {2}
    assert [(one.better, one.worse) for one in findings if one.kind == "harmful"] == [(0, 2)]


def test_beating_the_control_decides_where_it_was_asked_for() -> None:
    """Two good arms that nobody can tell apart beat the control together."""
    known = statistics((300, 1000), (700, 1000), (699, 1000))
    experiment = replace(_EXPERIMENT, control=0)
    assert judged(experiment, arms(3), known)[0].state == "leading"
    rule = ConcludeWhen(separated=False, min_observations=0, beats_control=True)
    found, _ = judged(replace(experiment, conclude_when=rule), arms(3), known)
    assert (found.state, found.reason, found.arm) == ("decided", "beats_control", 1)


def test_a_concluded_experiment_says_what_is_served() -> None:
    """Whatever leads."""
    experiment = replace(_EXPERIMENT, status="concluded", concluded_arm=1)
    found, _ = judged(experiment, arms(2), statistics((90, 100), (10, 100)))
    assert (found.state, found.arm, found.reason) == ("concluded", 1, "separated")


@pytest.mark.study
@pytest.mark.parametrize("difference", [0.0, 0.15])
def test_over_many_experiments_the_verdict_stays_and_is_seldom_wrong(difference: float) -> None:
    """Looks after every 25 rewards, findings kept as the service keeps them: no verdict is taken back, few are wrong."""
    rng = np.random.default_rng(17)
    there, runs, wrong = arms(3), 40, 0
    means = np.array([0.4 + difference, 0.4, 0.4])
    for _ in range(runs):
        successes, count = np.zeros(3, int), 0
        kept: tuple[Finding, ...] = ()
        decided = None
        for _ in range(30):
            successes += rng.binomial(25, means)
            count += 25
            found, findings = judged(_EXPERIMENT, there, statistics(*((int(one), count) for one in successes)), kept)
            kept = (*kept, *findings)
            assert decided is None or (found.state, found.arm) == decided or found.contradicted
            decided = (found.state, found.arm) if found.state == "decided" else decided
        wrong += decided is not None and (difference == 0.0 or decided[1] != 0)
    assert wrong <= 0.05 * runs
