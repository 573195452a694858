"""So many cases for a way in: requests cut at every place, with something hidden in them, and odd in any way."""

from __future__ import annotations

from collections.abc import Iterator

from testing.torture.raw_requests import RawCase, raw_case, split_cases
from testing.torture.smuggled_requests import SYSTEMATIC, bare_case, smuggled_case
from testing.torture.ways_in import Way

# As many again with two oddities at once.
_MOST_SMUGGLED = 2 * SYSTEMATIC


def cases(way: Way, count: int) -> Iterator[RawCase]:
    """A third of each at most; where few are wanted, from everywhere."""
    third, cuts = count // 3, split_cases()
    cut, smuggled = min(third, len(cuts)), min(third, _MOST_SMUGGLED)
    hiding = bare_case if way == "direct" else smuggled_case
    yield from (cuts[number] for number in _spread(cut, len(cuts)))
    yield from (hiding(number) for number in _spread(smuggled, _MOST_SMUGGLED))
    yield from map(raw_case, range(count - cut - smuggled))


def _spread(count: int, over: int) -> Iterator[int]:
    return (number * over // count for number in range(count))
