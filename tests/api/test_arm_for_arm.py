"""Arm for arm: when each reward is told before the next ask, the service draws what the algorithms draw, the paper's and ours.

The algorithms stand here once more, plainly, from the paper's formulas; nothing of the service is used to predict it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from testing.json_client import JsonClient, arms
from testing.server import Server

SEED = 7
TIE = 1e-9


@dataclass(frozen=True)
class Case:
    """One run: its arms, its rewards, its policy."""

    arms: int
    draws: int
    kind: str
    goal: str
    policy: str = "simple_tracking"
    sufficiency_by: str = "planned"
    batch_size: int | None = None
    ties: str = "paper"
    sharpness: float = 1.0
    guard: float = 0.0

    @property
    def name(self) -> str:
        """For the report, and for the experiment's key."""
        weights = (self.ties, self.sharpness, self.guard)
        parts = (self.policy, self.sufficiency_by, self.arms, self.kind, self.goal, self.draws, self.batch_size or "2k", *weights)
        return "-".join(str(part).replace("_", "-") for part in parts)

    @property
    def settings(self) -> dict[str, Any]:
        """What the experiment is created with."""
        reward: dict[str, Any] = {"kind": self.kind, "goal": self.goal}
        weights = {"ties": self.ties, "sharpness": self.sharpness, "guard": self.guard}
        policy: dict[str, Any] = {"kind": self.policy, "seed": SEED, **weights}
        if self.kind == "bounded":
            reward |= {"min": -2, "max": 3.5}
        if self.policy == "almost_tracking":
            policy |= {"sufficiency_by": self.sufficiency_by, "batch_size": self.batch_size}
        return {"arms": arms(self.arms), "reward": reward, "policy": policy}

    def reward(self, draw: int, arm: int) -> float:
        """What draw number `draw` brings if it is this arm: the same for the service and for the prediction."""
        rng = np.random.default_rng([self.arms, draw])
        strength = 0.2 + 0.6 * arm / self.arms
        if self.kind == "binary":
            return float(rng.random() < strength)
        if self.kind == "bounded":
            return float(-2 + 5.5 * rng.beta(1 + strength, 2 - strength))
        return float(rng.normal(strength))


def weights_of(means: NDArray[np.float64], case: Case) -> NDArray[np.float64]:
    """The H1 weights by the direct formula: D_i = d_i^2 * sum over j != i of 1 / (d_j + d_i)^2, mixed as the case has it."""
    gaps = means.max() - means
    if not gaps.any():
        return np.full(len(means), 1 / len(means))
    gaps = gaps / gaps.max()
    others = gaps > 0
    costs = np.empty(len(means))
    for i in np.flatnonzero(others):
        costs[i] = gaps[i] ** 2 * sum(1 / (np.delete(gaps, i) + gaps[i]) ** 2)
    tied = int((~others).sum())
    costs[~others] = 1 + (tied - 2) / 4 if case.ties == "limit" and tied > 1 else costs[others].min()
    plain, sharp = 1 / costs, 1 / costs**case.sharpness
    mixed = case.guard * plain / plain.sum() + (1 - case.guard) * sharp / sharp.sum()
    return np.asarray(mixed, np.float64)


class Run:
    """Counts and exact sums of a run in memory."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.counts = np.zeros(case.arms, np.int64)
        self.sums = [Fraction(0)] * case.arms

    def weights(self) -> NDArray[np.float64]:
        """The weights for the means as they are; smaller is better when minimising."""
        sign = 1 if self.case.goal == "maximize" else -1
        means = [sign * float(total / int(count)) for total, count in zip(self.sums, self.counts, strict=True)]
        return weights_of(np.array(means), self.case)

    def draw(self, arm: int) -> None:
        """Draw this arm and learn its reward."""
        self.sums[arm] += Fraction(self.case.reward(int(self.counts.sum()) + 1, arm))
        self.counts[arm] += 1


def simple_tracking(case: Case) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """Each arm once; then the arm that maximises w_i - N_i/t. Yields the arm and all scores."""
    run = Run(case)
    for draw in range(case.draws):
        scores = -(np.arange(case.arms) != draw).astype(float)
        if draw >= case.arms:
            scores = run.weights() - run.counts / draw
        arm = int(np.flatnonzero(scores >= scores.max() - TIE)[0])
        yield arm, scores
        run.draw(arm)


def almost_tracking(case: Case) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """Batches of N by the constant-ratio ceiling, handed out in passes over the positions."""
    run, size = Run(case), case.batch_size or 2 * case.arms
    planned: list[NDArray[np.float64]] = []
    while True:
        rng = np.random.default_rng([SEED, len(planned) + 1])
        if not planned:
            weights = np.full(case.arms, 1 / case.arms)
            counts = np.full(case.arms, size // case.arms)
        else:
            target = run.weights()
            share = np.mean(planned, axis=0) if case.sufficiency_by == "planned" else run.counts / run.counts.sum()
            weights = np.where(share <= target / 0.999 + TIE, target, 0.0)
            weights = weights / weights.sum()
            spread = size - np.count_nonzero(weights)
            counts = np.where(weights > 0, 1 + np.floor(weights * spread + TIE), 0).astype(np.int64)
        if counts.sum() < size:
            extra = rng.choice(case.arms, size=size - counts.sum(), p=weights)
            counts = counts + np.bincount(extra, minlength=case.arms)
        planned.append(weights)
        while counts.any():
            for arm in np.flatnonzero(counts):
                yield int(arm), weights
                run.draw(int(arm))
                counts[arm] -= 1


ALGORITHMS: dict[str, Callable[[Case], Iterator[tuple[int, NDArray[np.float64]]]]] = {
    "simple_tracking": simple_tracking,
    "almost_tracking": almost_tracking,
}
CASES = [
    *(Case(arms, 2_000, "binary", "maximize") for arms in (2, 5, 40)),
    *(Case(5, 200, kind, goal) for kind in ("bounded", "real") for goal in ("maximize", "minimize")),
    Case(7, 200, "binary", "minimize"),
    Case(12, 200, "real", "maximize"),
    Case(5, 400, "real", "maximize", "almost_tracking"),
    Case(5, 400, "binary", "minimize", "almost_tracking", "realised"),
    Case(6, 200, "bounded", "maximize", "almost_tracking", "planned", batch_size=17),
    Case(5, 2_000, "binary", "maximize", ties="limit"),
    Case(40, 1_000, "binary", "maximize", ties="limit"),
    Case(10, 1_000, "binary", "maximize", ties="limit", sharpness=2.0, guard=0.5),
    Case(7, 400, "binary", "minimize", ties="paper", sharpness=1.5, guard=0.25),
    Case(5, 400, "real", "maximize", ties="limit", sharpness=3.0, guard=0.75),
    Case(5, 400, "binary", "maximize", "almost_tracking", ties="limit", sharpness=2.0, guard=0.5),
]


@pytest.fixture(scope="session")
def drawn(untraced_server: Server) -> dict[Case, list[int]]:
    """The arms that the service drew, all cases in parallel, each with one client that tells before it asks again."""

    def play(case: Case) -> list[int]:
        with JsonClient(untraced_server.url) as wire:
            wire.create(case.name, **case.settings)
            chosen: list[int] = []
            for draw in range(1, case.draws + 1):
                asked = wire.ask(case.name)
                assert asked["draw"] == draw
                chosen.append(asked["value"])
                wire.tell(case.name, asked["id"], case.reward(draw, asked["value"]))
            return chosen

    with ThreadPoolExecutor(len(CASES)) as threads:
        return dict(zip(CASES, threads.map(play, CASES), strict=True))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_service_draws_what_the_paper_draws(case: Case, drawn: dict[Case, list[int]]) -> None:
    """Every draw is the algorithm's, to the last one."""
    predicted = ALGORITHMS[case.policy](case)
    for draw, (arm, (expected, scores)) in enumerate(zip(drawn[case], predicted, strict=False), 1):
        gap = scores[expected] - scores[arm]
        assert arm == expected, f"draw {draw}: the service drew {arm}, the paper {expected}; score gap {gap:.3e}"
    assert len(drawn[case]) == case.draws
