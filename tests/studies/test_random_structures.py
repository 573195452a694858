"""The random gap structures of the sharpness study."""

from __future__ import annotations

from studies.random_structures import all_structures


def test_structures_are_fixed_and_have_one_best_arm() -> None:
    """Four sizes, three shapes, two kinds; the same ones every time."""
    first, second = all_structures(), all_structures()
    assert first == second
    assert len({world.label for world in first}) == 24
