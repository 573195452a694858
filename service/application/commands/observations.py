"""Observations that were told with an id: corrected and voided by it, exactly, as rewards of assignments are."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import msgspec

from service.application.commands.tell import require_open, valid_reward
from service.domain import ObservationRecord
from service.errors import ObservationNotFound

if TYPE_CHECKING:
    from service.application.live.reader import WritingReader
    from service.domain.callers import Access, Scope
    from service.domain.lookups import LookupRequest
    from service.engine.ledger import Ledger


class ChangeObservation(msgspec.Struct, frozen=True, gc=False):
    """Another reward for an observation (PUT), which also brings a voided one back; or none any more (DELETE)."""

    id: str
    void: bool = False
    reward: float | None = None
    weight: ClassVar[int] = 1
    scope: ClassVar[Scope] = "reward"
    by_unit: ClassVar[bool] = False

    def request_lookups(self, lookups: LookupRequest, ledger: Ledger) -> None:
        """The observation."""
        lookups.observation_ids.add(self.id)

    def apply(self, ledger: Ledger, now: int) -> ObservationRecord:
        """The observation as it is afterwards; the same again changes nothing."""
        require_open(ledger)
        known = ledger.seen.observations.get(self.id)
        if known is None:
            raise ObservationNotFound(ledger.experiment.key, self.id)
        reward = None if self.void else valid_reward(ledger, self.reward)
        return known if known.state.reward == reward else ledger.change_observation(known, reward, now)


async def change(context: WritingReader, access: Access, command: ChangeObservation) -> ObservationRecord:
    """One correction or void, answered when it is durable."""
    return await context.writer.submit(access, command)
