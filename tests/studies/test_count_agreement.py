"""Which error counts agree."""

from __future__ import annotations

from studies.count_agreement import holm, two_sample_p


def test_holm() -> None:
    """The smallest p-value meets level/m, the next level/(m - 1), and the first miss ends it."""
    assert holm([0.001, 0.2, 0.004, 0.0049], 0.01) == [True, False, False, False]
    assert holm([0.001, 0.003, 0.9], 0.01) == [True, True, False]


def test_two_samples() -> None:
    """Equal shares agree, far ones do not."""
    assert two_sample_p(10, 1000, 20, 2000) > 0.9
    assert two_sample_p(10, 1000, 60, 1000) < 1e-6
