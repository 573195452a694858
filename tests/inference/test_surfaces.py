"""The evidence against pairs of means: what is added up is never more than the definition, and bounds are below it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain import RewardKind
from service.inference.samples import Floats, Samples
from service.inference.surfaces import SURFACES, Binary, Bounded, Lines, Real
from tests.inference.arms import unhurried
from tests.inference.whole_evidence import LEFT_OUT, log_evidence, one

KINDS: list[RewardKind] = ["binary", "bounded", "real"]
ROW = np.array([0])
GOAL = np.array([5.0])
shares = st.floats(0.02, 0.98)
rewards = st.sampled_from([3, 12, 90, 4_000])


def arm(kind: RewardKind, count: int, mean: float) -> Samples:
    """With a whole number of successes where it has to."""
    share = round(count * mean) / count if kind == "binary" else mean
    return one(count, share, share * (1.0 - share) if kind == "binary" else 0.6 * share * (1.0 - share) + 1e-6)


def line(offset: float, slope: float = 1.0, zero: float = np.nan) -> Lines:
    """Of one pair."""
    return Lines(np.array([offset]), np.array([slope]), np.array([zero]))


def aimed(kind: RewardKind, high: Samples, low: Samples, lines: Lines) -> Binary | Bounded | Real:
    """At the middle between the two sample means on the line."""
    surface = SURFACES[kind](high, low, GOAL)
    surface.aim(ROW, lines, 0.5 * (high.means + lines.high(low.means)))
    return surface


def possible(kind: RewardKind, surface: Binary | Bounded | Real, lines: Lines) -> Floats:
    """High means all over the line, in order."""
    first, last = surface.ends(ROW, lines)
    if kind == "real":
        return np.linspace(first[0], last[0], 401)[None, :]
    low, high = max(0.0, float(lines.high(0.0)[0])), min(1.0, float(lines.high(1.0)[0]))
    return np.unique(np.concatenate([np.linspace(low, high, 401), first, last]))[None, :]


@pytest.mark.parametrize("kind", KINDS)
@unhurried
@given(counts=st.tuples(rewards, rewards), means=st.tuples(shares, shares), offset=st.floats(-0.6, 0.6))
def test_a_few_points_bound_the_whole_line_from_below(
    kind: RewardKind, counts: tuple[int, int], means: tuple[float, float], offset: float
) -> None:
    """Nothing lower hides between them, nor beyond the sample means."""
    high, low = (arm(kind, count, mean) for count, mean in zip(counts, means, strict=True))
    lines = line(offset)
    surface = aimed(kind, high, low, lines)
    first, last = surface.ends(ROW, lines)
    if not first[0] < last[0]:
        return  # the line has no more than one point, or is on the other side of the sample means and never asked for
    everywhere = possible(kind, surface, lines)
    points = np.linspace(first[0], last[0], 7)[None, :]
    bound, _ = surface.least(ROW, lines, points)
    _, values = surface.least(ROW, lines, everywhere)
    assert bound[0] <= values.min() + 1e-7


@pytest.mark.parametrize("kind", KINDS)
@unhurried
@given(counts=st.tuples(rewards, rewards), means=st.tuples(shares, shares))
def test_the_evidence_is_that_of_the_definition_or_less(
    kind: RewardKind, counts: tuple[int, int], means: tuple[float, float]
) -> None:
    """What is left out only lowers it, and where it was aimed at by little."""
    high, low = (arm(kind, count, mean) for count, mean in zip(counts, means, strict=True))
    if not high.means[0] > low.means[0]:
        high, low = low, high
    lines = line(0.0)
    surface = aimed(kind, high, low, lines)
    points = np.linspace(low.means[0], high.means[0], 9)[None, :]
    found = surface.least(ROW, lines, points)[1][0]
    whole = log_evidence(kind, high, low, points[0], points[0])
    assert (found <= whole + 1e-9).all()
    assert not GOAL[0] <= whole[4] <= 4.0 * GOAL[0] or found[4] >= whole[4] - LEFT_OUT


@pytest.mark.parametrize("kind", KINDS)
def test_it_falls_in_the_high_mean_and_rises_in_the_low_one(kind: RewardKind) -> None:
    """Up to the sample means: so a line is ruled out as soon as the evidence is enough on it."""
    high, low = arm(kind, 400, 0.6), arm(kind, 300, 0.4)
    surface = aimed(kind, high, low, line(0.1))
    means = np.linspace(0.4, 0.6, 21)[None, :]
    values = np.stack([surface.least(ROW, line(offset), means)[1][0] for offset in (0.0, 0.05, 0.1)])
    assert (np.diff(values, axis=0) >= 0).all()  # a larger offset is a larger low mean
    steep = surface.least(ROW, line(0.5, 1e-9), means)[1][0]
    assert (np.diff(steep) <= 1e-6).all()


def test_a_ratio_has_a_line_through_its_zero() -> None:
    """And none of its points is below it."""
    lines = line(-0.5 * 0.2 + 0.2, 0.5, 0.2)
    assert lines.low(np.array([[0.2, 0.6]]))[0].tolist() == pytest.approx([0.2, 0.4])
    assert lines.high(0.4)[0] == pytest.approx(0.6)
    surface = aimed("bounded", arm("bounded", 200, 0.7), arm("bounded", 200, 0.3), lines)
    first, last = surface.ends(ROW, lines)
    assert 0.2 <= first[0] <= last[0] <= 1.0
