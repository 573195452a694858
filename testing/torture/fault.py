"""A fault: what is done, for how long, and when it counts as over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle
from random import Random
from typing import TypeAlias

from testing.torture.stage import Stage

Injection: TypeAlias = Callable[[Stage, Random, float], None]
"""Breaks something for so many seconds, and repairs what does not come back by itself."""


def in_turn(faults: Sequence[Fault]) -> Fault:
    """All of these, one after the other, as one."""
    turns = cycle(faults)

    def inject(stage: Stage, dice: Random, hold: float) -> None:
        turn = next(turns)
        if turn.prepare is not None:
            turn.prepare(stage)
        turn.inject(stage, dice, hold)

    return Fault("all in turn", faults[0].engine, inject)


@dataclass(frozen=True, slots=True)
class Fault:
    """One way to break a service or what it stands on."""

    name: str
    engine: str
    inject: Injection
    hold_seconds: float = 0.0
    """How long it lasts in the full campaign."""
    weight: float = 1.0
    """Its part of the campaign's time."""
    pause_seconds: float = 0.5
    """Between two of them."""
    from_beginning: bool = False
    """To recover from it takes the time from its beginning on, not from its end: starting again is a part of it."""
    prepare: Callable[[Stage], None] | None = None
    """What must be there before each."""
    until_whole: bool = False
    """It is over when all workers are back, not when the first one answers."""
