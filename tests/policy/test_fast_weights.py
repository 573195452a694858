"""The faster ways to the targets of many arms: as the direct formula, to 1e-11, and never another decision."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.domain import Arm, ArmRecord, ArmStatistics, Experiment, Expiry, PolicySpec, Progress, RewardSpec
from service.engine.ledger import Ledger
from service.policy import interpolation
from service.policy import memory as memory_module
from service.policy.base import DIRECT_UP_TO, SCORE_TIE, Evidence, Floats, track
from service.policy.interpolation import interpolated_sums
from service.policy.memory import REFRESH_AFTER, TargetMemory, remembered_targets
from service.policy.simple_tracking import SimpleTracking
from service.policy.weights import LIMIT, PAPER, WeightRule, gaps_to_best, pair_costs, ratio_sums, targets_from_means

TOLERANCE = 1e-11
ARMS = DIRECT_UP_TO + 8
SHARPEST = WeightRule(3.0)
RULES = [PAPER, LIMIT, SHARPEST, WeightRule(2.0, 0.5, "limit"), WeightRule(1.5, 0.25)]
Kind = Literal["plain", "tie", "tie with the best", "ulp", "beyond the best", "best falls", "silent", "tiny", "huge"]
KINDS: tuple[Kind, ...] = (
    "plain",
    "tie",
    "tie with the best",
    "ulp",
    "beyond the best",
    "best falls",
    "silent",
    "tiny",
    "huge",
)
MOVES = st.lists(st.tuples(st.integers(0, ARMS - 1), st.sampled_from(KINDS), st.floats(-1, 1)), min_size=1, max_size=25)


def moved_mean(means: Floats, kind: Kind, chance: float) -> float:
    """Where an arm goes in a move of this kind."""
    best = float(np.nanmax(means)) if not np.isnan(means).all() else 0.0
    return {
        "plain": chance,
        "tie": float(means[int((chance + 1) / 2 * (len(means) - 1))]),
        "tie with the best": best,
        "ulp": float(np.nextafter(best, -np.inf)),
        "beyond the best": float(np.nextafter(best, np.inf)) if chance < 0 else best + chance,
        "best falls": chance,
        "silent": float("nan"),
        "tiny": best - 1e-300 * (1 + chance),
        "huge": -1e300 * (1 + chance),
    }[kind]


def beginnings(seed: int, arms: int) -> list[Floats]:
    """Means of every shape that is hard on the arithmetic."""
    rng = np.random.default_rng(seed)
    return [
        rng.random(arms),
        rng.binomial(50, 0.3, arms) / 50,
        1.0 - np.geomspace(1e-16, 1, arms),
        -np.geomspace(1e-300, 1e300, arms),
        -np.geomspace(5e-324, 1e-300, arms),
        1.0 + rng.permutation(arms) * 2.0**-52,
        np.concatenate([[1.0], rng.normal(0.5, 1e-9, arms - 1)]),
        np.concatenate([[1.0, 1.0, 1.0 - 1e-12], np.zeros(arms - 3)]),
        np.concatenate([rng.choice([0.0, 1e-7, 1e-3], arms - 1), [5.0]]) + rng.random(arms) * 1e-12,
        rng.choice([-1.0, 1.0], arms) * 10.0 ** rng.uniform(-300, 300, arms),
        np.full(arms, 0.25),
        np.concatenate([np.full(arms - 5, 0.25), np.zeros(5)]),
        np.append(np.full(arms - 1, -1.7e308), 1.7e308),
    ]


def assert_as_direct(found: Floats, means: Floats, rule: WeightRule) -> None:
    """Within the tolerance, absolute, and weights all the same."""
    assert np.abs(found - targets_from_means(means, rule)).max() <= TOLERANCE
    assert abs(found.sum() - 1.0) <= 1e-12
    assert (found > 0).all()


@pytest.mark.parametrize("arms", [200, 1_000, 3_000])
def test_whole_computation_equals_the_direct_formula(arms: int) -> None:
    """Clusters, geometric gaps, one-ulp gaps, ties and any magnitude: the sums agree to 1e-13 of their size, the targets too."""
    for means in beginnings(arms, arms):
        gaps = gaps_to_best(means)
        challengers = gaps > 0
        sums = interpolated_sums(gaps)
        assert np.isnan(sums[~challengers]).all()
        assert sums[challengers] == pytest.approx(pair_costs(gaps)[challengers] + 0.25, rel=1e-13)
        for rule in RULES:
            assert_as_direct(remembered_targets(means, rule, None)[0], means, rule)


def test_worst_single_summand_bounds_every_sum() -> None:
    """A cell full of points against one far, near or equal gap: the relative error is below 1e-13, so it is for any sum."""
    points = np.exp2(np.linspace(-1, 3 - 1e-9, 400))
    for exponent in np.arange(-50, 40, 1.75):
        # Many copies of one gap outweigh what the points contribute to each other's sums.
        gaps = np.concatenate([[0.0], points, np.full(1_500, 2.0**exponent)])
        sums = interpolated_sums(gaps)[1:401]
        assert sums == pytest.approx(ratio_sums(points, gaps), rel=1e-13)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 12), st.integers(0, 99), st.sampled_from(RULES), MOVES, st.sampled_from([0, 40_000]))
def test_random_walks_equal_the_direct_formula(
    shape: int, seed: int, rule: WeightRule, moves: list[tuple[int, Kind, float]], cell_cost: int
) -> None:
    """Arms that move one at a time, across the best, into ties and out, by an ulp or 300 orders: every step agrees."""
    means = beginnings(seed, ARMS)[shape]
    memory: TargetMemory | None = None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interpolation, "_CELL_COST", cell_cost)  # 0: interpolate even where so few arms make it no gain
        for chosen, kind, chance in moves:
            index = int(np.nanargmax(means)) if kind == "best falls" and not np.isnan(means).all() else chosen
            means[index] = moved_mean(means, kind, chance)
            targets, memory = remembered_targets(means, rule, memory)
            assert_as_direct(targets, means, rule)


def test_steps_do_not_drift() -> None:
    """Thousands of moves, in bursts that fling a sum up and down by orders of magnitude, stay within the tolerance."""
    rng = np.random.default_rng(3)
    means = np.append(rng.random(ARMS - 1), 2.0)
    _, memory = remembered_targets(means, SHARPEST, None)
    for step in range(3 * REFRESH_AFTER):
        near = (step // 300) % 2 == 0
        means[rng.integers(ARMS - 1)] = 2.0 - (1e-8 * rng.random() if near else 1.0 + rng.random())
        targets, memory = remembered_targets(means, SHARPEST, memory)
        if step % 50 == 0:
            assert_as_direct(targets, means, SHARPEST)


def test_a_moved_arm_takes_a_step_and_a_moved_best_a_fresh_start() -> None:
    """The cheap way is taken where it may be: fresh starts are for the best mean, many moves, and other arms."""
    rng = np.random.default_rng(4)
    means = np.append(rng.random(ARMS - 1), 2.0)
    _, memory = remembered_targets(means, PAPER, None)
    means[5] = 0.5
    _, stepped = remembered_targets(means, PAPER, memory)
    assert stepped is not None
    assert stepped.steps == 1
    assert remembered_targets(means, PAPER, stepped)[1] is stepped
    means[-1] = 2.5
    _, fresh = remembered_targets(means, PAPER, stepped)
    assert fresh is not None
    assert fresh.steps == 0
    means[:100] += 0.01
    _, many = remembered_targets(means, PAPER, fresh)
    assert many is not None
    assert many.steps == 0
    targets, other_arms = remembered_targets(means[:-1], PAPER, many)
    assert other_arms is not None
    assert_as_direct(targets, means[:-1], PAPER)


def test_a_memory_is_a_value() -> None:
    """What was remembered does not change when it is used, and gives the same answer again."""
    rng = np.random.default_rng(5)
    means = np.append(rng.random(ARMS - 1), 2.0)
    _, memory = remembered_targets(means, PAPER, None)
    assert memory is not None
    kept = [memory.gaps.copy(), memory.sums.copy(), memory.peaks.copy()]
    means[3] = 0.1
    first, _ = remembered_targets(means, PAPER, memory)
    again, _ = remembered_targets(means, PAPER, memory)
    assert first.tolist() == again.tolist()
    for then, now in zip(kept, [memory.gaps, memory.sums, memory.peaks], strict=True):
        assert np.array_equal(then, now, equal_nan=True)


def test_few_arms_go_by_the_direct_formula() -> None:
    """Up to DIRECT_UP_TO arms nothing is remembered and no bit differs."""
    means = np.random.default_rng(6).random(DIRECT_UP_TO)
    targets, memory = remembered_targets(means, PAPER, None)
    assert memory is None
    assert targets.tolist() == targets_from_means(means).tolist()


def test_what_the_bound_does_not_cover_goes_by_the_direct_formula() -> None:
    """Beyond the largest sharpness of the API no bound is proved, so nothing faster is used."""
    means = np.random.default_rng(6).random(ARMS)
    targets, memory = remembered_targets(means, WeightRule(3.5), None)
    assert memory is None
    assert targets.tolist() == targets_from_means(means, WeightRule(3.5)).tolist()


def test_arms_without_any_reward_share_alike() -> None:
    """Before the first reward of many arms the targets are equal."""
    targets, memory = remembered_targets(np.full(ARMS, np.nan), PAPER, None)
    assert memory is None
    assert targets.tolist() == [1 / ARMS] * ARMS


@pytest.mark.parametrize("offset", [-1e-10, -1e-14, 0.0, 1e-14, 1e-10])
def test_a_tie_in_doubt_is_decided_by_the_direct_formula(offset: float) -> None:
    """Targets off by their allowed error decide like the direct ones, however close a score lies to the edge of a tie."""
    targets = np.full(ARMS, 1.0 / ARMS)
    targets[7] += SCORE_TIE + offset
    evidence = Evidence(np.zeros(ARMS), np.zeros(ARMS, np.int64), np.zeros(ARMS, np.bool_), np.zeros(ARMS))
    expected = track(evidence, lambda: targets, lambda: targets)
    rng = np.random.default_rng(7)
    for _ in range(20):
        off = targets * (1 + rng.uniform(-2.5e-11, 2.5e-11, ARMS))
        assert track(evidence, lambda off=off: off, lambda: targets) == expected  # type: ignore[misc]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([1, 10, 1_000]), st.booleans())
def test_decisions_are_those_of_the_direct_formula(seed: int, scale: int, with_floors: bool) -> None:  # noqa: FBT001 - hypothesis
    """Tracking from remembered targets draws the very arms that tracking from direct ones draws."""
    rng = np.random.default_rng(seed)
    policy = SimpleTracking(WeightRule(2.0, 0.5, "limit"))
    means = rng.binomial(20, 0.4, ARMS) / 20
    floors = np.where(np.arange(ARMS) < 3, 0.05, 0.0) if with_floors else np.zeros(ARMS)
    evidence = Evidence(means, rng.integers(1, 3, ARMS) * scale, np.zeros(ARMS, np.bool_), floors)
    memory: TargetMemory | None = None
    for _ in range(15):
        targets, memory = policy.fast_targets(evidence, memory)
        choice, _ = policy.choose(evidence, lambda targets=targets: targets)  # type: ignore[misc]
        direct, _ = policy.choose(evidence, lambda: policy.targets(evidence))
        assert choice == direct
        evidence.draws[choice.index] += 1
        means[choice.index] += (rng.integers(2) - means[choice.index]) / 20


def ledger_of(arms: int, expiry: Expiry | None) -> Ledger:
    """A new experiment with this many arms."""
    policy, reward = (
        PolicySpec("simple_tracking", seed=1, sharpness=1.25, guard=0.25, ties="limit", keeps_floors=True),
        RewardSpec("binary"),
    )
    experiment = Experiment(1, "many", "", "", policy, reward, expiry, True, 0.95, None, "running", None, 0)
    progress = Progress(experiment, version=1, as_of=0, draws=0, epoch=1)
    named = (Arm(place, f"arm-{place}", "", None, min_share=0.01 if place == 1 else 0.0) for place in range(arms))
    return Ledger(progress, [ArmRecord(arm, ArmStatistics()) for arm in named])


@pytest.mark.parametrize("expiry", [None, Expiry(60.0, 0.0)])
def test_ledger_decides_as_the_direct_formula_over_a_long_trace(expiry: Expiry | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Late rewards, corrections, observations, an arm switched off and on: two ledgers, one direct, draw the same arms."""

    def trace() -> list[int]:
        rng = np.random.default_rng(8)
        ledger = ledger_of(ARMS + 1, expiry)
        drawn, waiting = [], []
        for step in range(900):
            waiting.append(ledger.draw(None, None, step))
            drawn.append(waiting[-1].arm)
            if rng.random() < 0.9:
                assignment = waiting.pop(int(rng.integers(len(waiting))))
                reward = float(rng.random() < 0.2 + 0.5 * assignment.arm / ARMS)
                told = ledger.step(assignment, "reward", reward, step)
                if rng.random() < 0.05:
                    ledger.step(told, "correction", 1.0 - reward, step)
            if step % 100 == 99:
                ledger.observe(int(rng.integers(ARMS)), 1.0, None, step)
            if step in (500, 650):
                arm = ledger.arms[4]
                status: Literal["active", "disabled"] = "disabled" if arm.active else "active"
                ledger.change_arm(Arm(arm.position, arm.key, "", None, status=status), {}, step)
            ledger.forget_changes()
        return drawn

    fast = trace()
    monkeypatch.setattr(memory_module, "DIRECT_UP_TO", 10**9)
    assert trace() == fast
