"""Rewards come at once, late, or never, and the two counts say so."""

from __future__ import annotations

import numpy as np

from service.policy.base import Floats
from service.simulation.environments import Environment, of_means
from service.simulation.kernels import traffic
from service.simulation.runner import world_of
from tests.simulation.playing import certain, counts_of, play_once


def books_after(environment: Environment, draws: int) -> list[Floats]:
    """The book after each draw of arm 1."""
    world, rng = world_of(environment, traced=False), np.random.default_rng(5)
    book, post = traffic.open_book(environment.array()), traffic.open_post(world)
    trace = np.zeros(0, np.int64)
    found = []
    for time in range(draws):
        traffic.pull(world, book, post, trace, 1, time, rng)
        found.append(book.copy())
    return found


def test_a_delayed_reward_is_known_after_that_many_further_draws() -> None:
    """With a delay of 3 the first reward is known after the fourth draw."""
    books = books_after(certain([0.0, 1.0]).with_traffic(3, 0.0), 6)
    assert [book[traffic.DRAWS, 1] for book in books] == [1, 2, 3, 4, 5, 6]
    assert [book[traffic.OBSERVED, 1] for book in books] == [0, 0, 0, 1, 2, 3]
    assert np.isnan(books[2][traffic.MEANS, 1])
    assert books[3][traffic.MEANS, 1] == 1.0


def test_lost_rewards_stay_awaited_for_ever() -> None:
    """Draws count them, observations never do."""
    last = books_after(certain([0.0, 1.0]).with_traffic(0, 0.3), 4000)[-1]
    assert last[traffic.DRAWS, 1] == 4000
    assert abs(last[traffic.OBSERVED, 1] - 2800) < 5 * np.sqrt(4000 * 0.21)


def test_a_random_delay_has_its_mean() -> None:
    """Of many draws about the mean delay is under way, by Little's law."""
    books = books_after(certain([0.0, 1.0]).with_traffic(50, 0.0, geometric=True), 20_000)
    waiting = [book[traffic.DRAWS, 1] - book[traffic.OBSERVED, 1] for book in books[2000:]]
    assert abs(np.mean(waiting) - 50) < 3


def test_reward_kinds_have_their_means() -> None:
    """Gaussian with unit variance, zeros and ones, and bounded ones inside [0, 1]."""
    for kind, deviation in (("gaussian", 1.0), ("bernoulli", np.sqrt(0.21)), ("bounded", 0.3 / np.sqrt(3))):
        world = world_of(of_means([0.0, 0.7], kind), traced=False)  # type: ignore[arg-type]
        rng = np.random.default_rng(3)
        rewards = np.array([traffic.reward_of(world, 0.7, rng) for _ in range(20_000)])
        assert abs(rewards.mean() - 0.7) < 5 * deviation / np.sqrt(20_000)
        assert abs(rewards.std() - deviation) < 0.02
        if kind != "gaussian":
            assert rewards.min() >= 0.0
            assert rewards.max() <= 1.0


def test_late_rewards_do_not_stall_or_flood_an_arm() -> None:
    """A thousand asks before the first reward spread evenly over the arms."""
    environment = of_means([0.1, 0.2, 0.3, 0.4]).with_traffic(1000, 0.0)
    trace, _ = play_once(environment, "simple_tracking", 1000)
    assert counts_of(trace, 4) == [250] * 4


def test_every_algorithm_survives_late_and_lost_rewards() -> None:
    """None is defined for them, but all spend the budget and recommend an arm."""
    environment = of_means([0.0, 0.2, 3.0, 0.1]).with_traffic(20, 0.2, geometric=True)
    for policy in ("uniform", "sr", "sh", "cr_a", "cr_c", "dsr", "dsh", "ts_tc", "eb_tc", "eb_tc_eps0", "pooled"):
        trace, picks = play_once(environment, policy, 400)
        assert (trace >= 0).sum() > 300
        assert picks[-1] == 2
