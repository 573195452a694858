"""The instances, and which means are refused."""

from __future__ import annotations

import pytest

from service.errors import InvalidValue
from service.simulation.environments import INSTANCES, instance, of_means


def test_instances() -> None:
    """K = 40 for the ten; the best arm is the first, except on instance 2, whose means increase."""
    assert [instance(name).arms for name in INSTANCES] == [40] * 10
    assert [instance(name).best for name in INSTANCES] == [0, 39, 0, 0, 0, 0, 0, 0, 0, 0]
    assert (instance("open_bandit").arms, instance("movielens").arms) == (80, 31)


@pytest.mark.parametrize(
    ("means", "kind", "words"),
    [
        ([1.0], "gaussian", "number of arms"),
        ([1.0, 1.0], "gaussian", "no best arm"),
        ([float("nan"), 1.0], "gaussian", "Means must be numbers"),
        ([1e7, 1.0], "gaussian", "in magnitude"),
        ([1.5, 0.5], "bernoulli", "between 0 and 1"),
        ([0.1, 0.2], "poisson", "no 'poisson' rewards"),
    ],
)
def test_bad_means(means: list[float], kind: str, words: str) -> None:
    """Refused with a sentence."""
    with pytest.raises(InvalidValue, match=words):
        of_means(means, kind)  # type: ignore[arg-type]


def test_bad_traffic_and_instances() -> None:
    """Unknown instances, negative delays and certain losses are refused with a sentence, too."""
    with pytest.raises(InvalidValue, match="no instance '11'"):
        instance("11")
    with pytest.raises(InvalidValue, match="delay"):
        instance("1").with_traffic(-1, 0.0)
    with pytest.raises(InvalidValue, match="below 1"):
        instance("1").with_traffic(0, 1.0)
