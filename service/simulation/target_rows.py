"""Targets and draws of many runs side by side, one row each: the policies' formulas over a whole table of means.

A step of m draws goes by targets that stand still for so long. Simple Tracking always draws the arm furthest below its target, so
after the step the arms that were behind are equally far behind: with T draws then, deficits e_i = w_i T - N_i and a level c,

    n_i = max(0, e_i - c),   sum of n_i = m.

An arm that leads by luck leads until its own rewards say otherwise: no arm gets more than a quarter of the draws it has.

Almost Tracking splits the step as it splits one of its batches of B draws, of which P arms are behind: 1 + w_i (B - P) each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from service.policy.base import Bools, Floats, mix_floors
from service.policy.weights import PAIR_WITH_ITSELF, WeightRule

if TYPE_CHECKING:
    from service.domain import PolicySpec

# Pairs of arms are formed for so many at once, which stay in a core's cache.
_PAIRS_AT_ONCE = 1 << 16
_SUFFICIENCY_SLACK = 1e-9
# The draws of an arm grow by this much in a step at most.
_MOST_GROWTH = 0.25
_ROUNDS = 4
_SETTLED = 1e-9
# The deficit of an arm that gets no more.
_FULL = -1e18


def targets_of_rows(means: Floats, floors: Floats, rule: WeightRule) -> Floats:
    """What `service.policy.weights.mixed_targets` gives for each row: larger means are better, NaN is an arm without a reward."""
    known = ~np.isnan(means)
    best = np.where(known, means, -np.inf).max(axis=1, keepdims=True)
    gaps = np.where(known, np.where(known, best, 0.0) - np.where(known, means, 0.0), np.inf)
    inverse = np.where(known, _inverse_costs(gaps, rule), 0.0)
    weights = _normalised(inverse)
    if rule.mixes:
        weights = rule.guard * weights + (1.0 - rule.guard) * _normalised(inverse**rule.sharpness)
    arms = means.shape[1]
    shared = weights * (known.sum(axis=1, keepdims=True) / arms)
    return mix_floors(np.where(known, shared, 1.0 / arms), floors)


def _inverse_costs(gaps: Floats, rule: WeightRule) -> Floats:
    """1/D of every arm; the gaps of arms without a reward are infinite and count for nothing."""
    runs, arms = gaps.shape
    tied, behind = gaps == 0.0, (gaps > 0.0) & np.isfinite(gaps)
    own = np.where(behind, gaps, 1.0)
    costs = np.empty_like(gaps)
    rows = max(1, _PAIRS_AT_ONCE // (arms * arms))
    for start in range(0, runs, rows):
        block = own[start : start + rows, :, None]
        ratios = block / (block + gaps[start : start + rows, None, :])
        costs[start : start + rows] = (ratios * ratios).sum(axis=2) - PAIR_WITH_ITSELF
    cheapest = np.where(behind, costs, np.inf).min(axis=1, keepdims=True)
    if rule.ties == "limit":
        size = tied.sum(axis=1, keepdims=True)
        cheapest = np.where(size > 1, 1.0 + (size - 2.0) / 4.0, cheapest)
    inverse: Floats = 1.0 / np.where(tied, np.where(np.isfinite(cheapest), cheapest, 1.0), costs)
    return inverse


def _normalised(values: Floats) -> Floats:
    totals = values.sum(axis=1, keepdims=True)
    return values / np.where(totals > 0.0, totals, 1.0)


class Splitter(Protocol):
    """How a policy splits the draws of a step among the arms of every run."""

    def split(self, means: Floats, draws: Floats, step: int) -> Floats:
        """The draws of each arm, which need not be whole; each row sums to the step."""
        ...

    def keep(self, rows: Bools) -> None:
        """Forget the other runs."""
        ...


def splitter_of(spec: PolicySpec, floors: Floats, runs: int) -> Splitter:
    """That of an experiment's policy."""
    rule = WeightRule(spec.sharpness, spec.guard, spec.ties)
    if spec.kind == "almost_tracking":
        return _Batches(rule, floors, runs, max(spec.batch_size or 0, 2 * len(floors)), spec.sufficiency)
    return _Tracking(None if spec.kind == "uniform" else rule, floors)


class _Tracking:
    def __init__(self, rule: WeightRule | None, floors: Floats) -> None:
        self._rule, self._floors = rule, floors
        self._equal = mix_floors(np.full(len(floors), 1.0 / len(floors)), floors)

    def split(self, means: Floats, draws: Floats, step: int) -> Floats:
        targets = self._equal if self._rule is None else targets_of_rows(means, self._floors, self._rule)
        return _filled_up(
            targets * (draws.sum(axis=1, keepdims=True) + step) - draws, np.maximum(_MOST_GROWTH * draws, 1.0), step
        )

    def keep(self, rows: Bools) -> None:
        """It has no memory."""


class _Batches:
    """The average of what was planned decides which arms are behind."""

    def __init__(self, rule: WeightRule, floors: Floats, runs: int, size: int, sufficiency: float) -> None:
        self._rule, self._floors, self._size, self._sufficiency = rule, floors, size, sufficiency
        self._planned = np.zeros((runs, len(floors)))

    def split(self, means: Floats, draws: Floats, step: int) -> Floats:  # noqa: ARG002 - its plans count, not its draws
        targets = targets_of_rows(means, self._floors, self._rule)
        total = self._planned.sum(axis=1, keepdims=True)
        behind = self._planned <= total * (targets / self._sufficiency + _SUFFICIENCY_SLACK)
        weights = _normalised(np.where(behind, targets, 0.0))
        self._planned += step * weights
        spread = self._size - behind.sum(axis=1, keepdims=True)
        return np.where(behind, 1.0 + weights * spread, 0.0) * (step / self._size)

    def keep(self, rows: Bools) -> None:
        self._planned = self._planned[rows]


def _filled_up(deficits: Floats, most: Floats, step: int) -> Floats:
    """Of each row max(0, deficit - c), no arm more than the most that it may get; what is left over goes by the most."""
    parts = np.zeros_like(deficits)
    for _ in range(_ROUNDS):
        left = step - parts.sum(axis=1, keepdims=True)
        if not (left > _SETTLED * step).any():
            return parts
        parts = np.minimum(parts + _above_level(np.where(parts < most, deficits - parts, _FULL), left), most)
    left = step - parts.sum(axis=1, keepdims=True)
    filled: Floats = parts + left * most / most.sum(axis=1, keepdims=True)
    return filled


def _above_level(deficits: Floats, step: Floats) -> Floats:
    """Of each row max(0, deficit - c), with c such that they sum to the step."""
    ordered = -np.sort(-deficits, axis=1)
    above = np.cumsum(ordered, axis=1) - step
    last = np.maximum((ordered * np.arange(1, deficits.shape[1] + 1) > above).sum(axis=1) - 1, 0)[:, None]
    level = np.take_along_axis(above, last, axis=1) / (last + 1.0)
    parts: Floats = np.maximum(deficits - level, 0.0)
    return parts


def whole(parts: Floats, step: int, rng: np.random.Generator) -> Floats:
    """Each part rounded down or up at random, so that each row still sums to the step."""
    edges = np.cumsum(parts, axis=1)
    edges[:, -1] = step
    reached = np.floor(edges + rng.random((len(parts), 1)))
    counts: Floats = np.diff(reached, axis=1, prepend=0.0)
    return counts
