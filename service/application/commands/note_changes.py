"""Note what a look has seen change: another leader, or drift. Each becomes an event of the history, for those who asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from service.domain.lookups import NotLookedUp

if TYPE_CHECKING:
    from service.domain import EventKind, ExperimentVersion, Json
    from service.domain.callers import Scope
    from service.domain.lookups import LookupRequest
    from service.engine.ledger import Ledger

# What was noted or done meanwhile by others, and makes what was seen old.
_OLD_AFTER: frozenset[EventKind] = frozenset({"leader_changed", "drift_noticed", "lifecycle", "arm_added", "arm_changed"})


@dataclass(frozen=True, slots=True)
class NewLeader:
    """Who leads, and who did when that was noted last."""

    arm: int | None
    previous: int | None
    first: bool
    """Nothing was ever noted before."""


@dataclass(frozen=True, slots=True)
class NoteChanges:
    """Changes as seen at a version that was stored. Written only if nobody has noted or decided anything since then."""

    seen: ExperimentVersion
    leader: NewLeader | None
    drifting: list[int]

    scope: ClassVar[Scope] = "manage"
    by_unit: ClassVar[bool] = False

    @property
    def weight(self) -> int:
        """One request."""
        return 1

    def request_lookups(self, lookups: LookupRequest, ledger: Ledger) -> None:
        """What happened since."""
        lookups.want_findings(self.seen.number)

    def apply(self, ledger: Ledger, now: int) -> bool:
        """Was it noted? If not, the next look sees what is so then."""
        experiment, looked_up = ledger.experiment, ledger.seen
        if looked_up.findings is None:
            raise NotLookedUp
        if experiment.id != self.seen.experiment or experiment.status not in ("running", "paused"):
            return False
        since = [*looked_up.audited_since, *ledger.log.events]  # what is stored, and what is decided to be written with this
        if any(event.kind in _OLD_AFTER and event.sequence > self.seen.number for event in since):
            return False
        if self.leader is not None:
            details: dict[str, Json] = {"previous": self.leader.previous}
            if self.leader.first:
                details["first"] = True
            ledger.note("leader_changed", details, now, self.leader.arm)
        if self.drifting:
            ledger.note("drift_noticed", {"drifting": list(self.drifting)}, now)
        return True
