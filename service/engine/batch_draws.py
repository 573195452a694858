"""Many draws at once: what so many single ones would be, but the counters move once, and each arm's."""

from __future__ import annotations

from collections import Counter
from itertools import count
from typing import TYPE_CHECKING

from service.domain import Assignment, state_when_drawn
from service.randomness import random_63_bits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.engine.ledger import Ledger
    from service.policy.base import Choice


def draw_many(ledger: Ledger, units: Sequence[str | None], now: int) -> list[Assignment]:
    """A draw for each unit, in order; one by one where each moves a mean, or where no run knows the next arms beforehand."""
    statistics, expiry = ledger.statistics, ledger.experiment.expiry
    chosen = ledger.allocator.choose_ahead(len(units)) if units and (expiry is None or expiry.reward is None) else None
    if chosen is None:
        return [ledger.draw(unit, None, now) for unit in units]
    drawn = _assignments(ledger, units, chosen, now)
    for position, times in Counter([one.arm for one in drawn]).items():
        statistics[position] = statistics[position].with_draws(times)
        ledger.allocator.drawn(position)
        ledger.log.drawn_arms.add(position)
    _remember(ledger, drawn)
    return drawn


def _assignments(ledger: Ledger, units: Sequence[str | None], chosen: Sequence[Choice], now: int) -> list[Assignment]:
    """The draws, with the numbers that follow those given so far."""
    active, epoch, expiry, pending = ledger.allocator.active, ledger.epoch, ledger.experiment.expiry, state_when_drawn(None)
    at = max(ledger.as_of, now)
    expires_at = None if expiry is None else expiry.window_end(at)
    drawn = [
        Assignment(
            draw, random_63_bits(), sequence, active[choice.index], unit, choice.reason, epoch, at, expires_at, None, pending
        )
        for draw, sequence, choice, unit in zip(count(ledger.draws + 1), count(ledger.version + 1), chosen, units, strict=False)
    ]  # fmt: skip
    ledger.as_of, ledger.version, ledger.draws = at, ledger.version + len(drawn), ledger.draws + len(drawn)
    ledger.may_expire = ledger.may_expire or expiry is not None
    return drawn


def _remember(ledger: Ledger, drawn: Sequence[Assignment]) -> None:
    """What later requests of the group, and the rows to be written, see of them."""
    by_draw = {one.draw: one for one in drawn}
    ledger.log.drawn += drawn
    ledger.seen.assignments.update(by_draw)
    ledger.recent_draws.update(by_draw)
    ledger.seen.by_unit.update({one.unit: one.draw for one in drawn if one.unit is not None})
