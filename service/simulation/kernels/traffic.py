"""What a draw does to what is known: a reward, at once or late or never.

As in live traffic an arm has two counts: `draws` (with those whose reward is still awaited) and `observed` (rewards that
came). A lost reward is awaited for ever. Counts are floats because the scores mix them with floats; they are exact below
2^53.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from service.policy.base import Floats, Ints
from service.simulation.kernels.compilation import compiled, inlined

GAUSSIAN, BERNOULLI, BOUNDED = 0, 1, 2

# The rows of the book, one column an arm.
DRAWS, OBSERVED, SUMS, MEANS, TRUTH = 0, 1, 2, 3, 4

# The rows of the post: the first reward due after a draw, then by draw: the next one due with it, its arm, the reward.
FIRST, NEXT, ARM, REWARD = 0, 1, 2, 3

# A geometric delay is cut at this many times its mean: one reward in 10^8 comes early because of it.
_LONGEST_DELAY = 19


class World(NamedTuple):
    """How rewards come: numbers only, because taking an array out of a tuple costs more than all else that a draw does."""

    kind: int
    """Gaussian with unit variance; 0 or 1; or uniform around the mean, as wide as [0, 1] allows."""
    delay: int
    """How many further draws are decided before a reward is known (0: at once); the mean if geometric."""
    geometric: bool
    loss: float
    """The probability that a reward never comes."""
    plain: bool
    """Gaussian, at once, never lost, and nobody wants the trace: the short way through a draw."""


@compiled
def open_book(truth: Floats) -> Floats:
    """Nothing drawn yet: an arm's mean is NaN until its first reward."""
    book = np.zeros((5, len(truth)))
    book[MEANS] = np.nan
    book[TRUTH] = truth
    return book


@compiled
def open_post(world: World) -> Floats:
    """No reward under way: for each draw after which rewards can come, the list of them."""
    window = world.delay + 2
    if world.geometric:
        window = _LONGEST_DELAY * (world.delay + 1) + 2
    return np.full((4, window), -1.0)


@compiled
def reward_of(world: World, mean: float, rng: np.random.Generator) -> float:
    """One reward of an arm with this mean."""
    if world.kind == GAUSSIAN:
        return mean + rng.standard_normal()
    if world.kind == BERNOULLI:
        return 1.0 if rng.random() < mean else 0.0
    return mean + (2.0 * rng.random() - 1.0) * min(mean, 1.0 - mean)


@compiled
def record(book: Floats, arm: int, reward: float) -> None:
    """A reward came."""
    book[OBSERVED, arm] += 1.0
    book[SUMS, arm] += reward
    book[MEANS, arm] = book[SUMS, arm] / book[OBSERVED, arm]


@compiled
def is_live(world: World) -> bool:
    """True where rewards may be late or lost."""
    return world.delay > 0 or world.loss > 0.0


@inlined
def pull(world: World, book: Floats, post: Floats, trace: Ints, arm: int, time: int, rng: np.random.Generator) -> None:
    """Draw the arm as draw number `time` (from 0), then take in all rewards that come before the next draw."""
    if world.plain:
        book[DRAWS, arm] += 1.0
        book[OBSERVED, arm] += 1.0
        book[SUMS, arm] += book[TRUTH, arm] + rng.standard_normal()
        book[MEANS, arm] = book[SUMS, arm] / book[OBSERVED, arm]
    else:
        _pull_any(world, book, post, trace, arm, time, rng)


@compiled
def _pull_any(world: World, book: Floats, post: Floats, trace: Ints, arm: int, time: int, rng: np.random.Generator) -> None:
    """The long way: any reward, perhaps late, perhaps traced."""
    book[DRAWS, arm] += 1.0
    if is_live(world):
        _exchange(world, book, post, arm, time, rng)
    else:
        record(book, arm, reward_of(world, book[TRUTH, arm], rng))
    if len(trace) > 0:
        trace[time] = arm


@compiled
def _exchange(world: World, book: Floats, post: Floats, arm: int, time: int, rng: np.random.Generator) -> None:
    """Send this draw's reward on its way, if it is not lost, and take in what comes before the next draw."""
    window = post.shape[1]
    if world.loss == 0.0 or rng.random() >= world.loss:
        slot, due = time % window, (time + _lateness(world, rng)) % window
        post[ARM, slot] = arm
        post[REWARD, slot] = reward_of(world, book[TRUTH, arm], rng)
        post[NEXT, slot] = post[FIRST, due]
        post[FIRST, due] = slot
    slot = int(post[FIRST, time % window])
    while slot >= 0:
        record(book, int(post[ARM, slot]), post[REWARD, slot])
        slot = int(post[NEXT, slot])
    post[FIRST, time % window] = -1.0


@compiled
def _lateness(world: World, rng: np.random.Generator) -> int:
    """After how many further draws this reward comes."""
    if not world.geometric:
        return world.delay
    late = math.log(1.0 - rng.random()) / math.log(1.0 - 1.0 / (world.delay + 1.0))
    return int(min(late, _LONGEST_DELAY * (world.delay + 1.0)))


@inlined
def draw_for_baseline(
    world: World, book: Floats, post: Floats, trace: Ints, arm: int, time: int, rng: np.random.Generator
) -> None:
    """Draw for a baseline: none of them is defined for late rewards, so an arm without any counts as the average of all."""
    pull(world, book, post, trace, arm, time, rng)
    if not world.plain and is_live(world):
        _fill_in(book)


@compiled
def _fill_in(book: Floats) -> None:
    """Give the arms without any reward the average of all rewards."""
    known = book[OBSERVED].sum()
    average = book[SUMS].sum() / known if known > 0.0 else 0.0
    for i in range(book.shape[1]):
        if book[OBSERVED, i] == 0.0:
            book[MEANS, i] = average


@compiled
def forget(book: Floats) -> None:
    """Start the statistics anew; rewards still under way will count."""
    book[OBSERVED] = 0.0
    book[SUMS] = 0.0
    book[MEANS] = np.nan


@compiled
def best_of(means: Floats) -> int:
    """The lowest arm with the largest mean; -1 while no arm has any."""
    pick = -1
    for i in range(len(means)):
        if not np.isnan(means[i]) and (pick < 0 or means[i] > means[pick]):
            pick = i
    return pick


@compiled
def best_active(means: Floats, active: Ints) -> int:
    """The lowest active arm with the largest mean; -1 while none has any."""
    pick = -1
    for i in range(len(means)):
        if active[i] and not np.isnan(means[i]) and (pick < 0 or means[i] > means[pick]):
            pick = i
    return pick


@inlined
def is_due(checkpoints: Ints, shown: int, drawn: int) -> bool:
    """Is a recommendation asked for after so many draws?"""
    return shown < len(checkpoints) and checkpoints[shown] == drawn
