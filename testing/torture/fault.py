"""A fault: what is done, for how long, and when it counts as over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import TypeAlias

from testing.torture.stage import Stage

Injection: TypeAlias = Callable[[Stage, Random, float], bool | None]
"""Breaks something for so many seconds, and repairs what does not come back by itself. False if nothing broke after all."""


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
    at_least: int = 1
    """So often in the full campaign, however long that takes."""
    pause_seconds: float = 0.5
    """Between two of them."""
    from_beginning: bool = False
    """To recover from it takes the time from its beginning on, not from its end: starting again is a part of it."""
    prepare: Callable[[Stage], None] | None = None
    """What must be there before each."""
    stops_experiments: bool = False
    """Some asks are refused for it, as they must be."""
    until_whole: bool = False
    """It is over when all workers are back, not when the first one answers."""
