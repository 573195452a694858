"""Fuzzes the recogniser of plain requests by what its code and the general way's reach: `make fuzz`.

    python -m testing.fuzzing.recogniser_target CORPUS... [-max_total_time=600] [-runs=N] [options of libFuzzer]

What breaks is written into the working directory as crash-…, and said with its traceback.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from random import Random

import atheris

with atheris.instrument_imports(
    include=["service.web", "service.domain.api_keys", "json", "urllib.parse", "starlette.routing", "testing.fuzzing"]
):
    from testing.fuzzing.plain_requests import PLAIN, with_one_part_changed
    from testing.fuzzing.recogniser_oracle import judge

_DICTIONARY = Path(__file__).with_name("recogniser.dict")
_LONGEST = 1_024
_MOST_MORE = 32
_ANYWHERE, _IN_ONE_PART = 0.1, 0.4
_SAY_EVERY = 1_000_000
_taken: Counter[str] = Counter()


def run_one(data: bytes) -> None:
    """One input, as the second request of its connection: many lines are those of the first, as in life."""
    _taken[str(judge(data, PLAIN[len(data) % len(PLAIN)]))] += 1
    if _taken.total() % _SAY_EVERY == 0:
        sys.stderr.write(f"taken for: {dict(_taken)}\n")


def mutated(data: bytes, longest: int, seed: int) -> bytes:
    """Changed in one part, or anywhere; often a plain request, because of what is changed anywhere nearly all is passed down."""
    dice = Random(seed)  # noqa: S311 - it plays
    kind = dice.random()
    if kind < _ANYWHERE:
        changed: bytes = atheris.Mutate(data, longest)
        return changed
    begun = data if kind < _ANYWHERE + _IN_ONE_PART else dice.choice(PLAIN)
    return with_one_part_changed(begun, dice, lambda part: atheris.Mutate(part, len(part) + _MOST_MORE))[:longest]


def main() -> None:
    """As libFuzzer's own programs."""
    options = f"-dict={_DICTIONARY}", f"-max_len={_LONGEST}", "-use_value_profile=1"
    atheris.Setup([sys.argv[0], *options, *sys.argv[1:]], run_one, custom_mutator=mutated)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
