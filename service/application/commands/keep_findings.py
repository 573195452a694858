"""Keep what was shown: findings become events of the history, unless what they rest on was disturbed since they were seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from service.domain.findings import EVENT_KINDS, Finding, best_of, disturbances_of
from service.domain.lookups import NotLookedUp

if TYPE_CHECKING:
    from service.domain import Experiment, ExperimentVersion, Json
    from service.domain.callers import Scope
    from service.domain.lookups import LookupRequest
    from service.engine.ledger import Ledger


@dataclass(frozen=True, slots=True)
class KeepFindings:
    """Findings as seen at a version that was stored. They need not be shown any more: a rejection that was valid stays so."""

    seen: ExperimentVersion
    findings: list[Finding]

    scope: ClassVar[Scope] = "manage"
    by_unit: ClassVar[bool] = False

    @property
    def weight(self) -> int:
        """How much it adds to a group: a finding is a row and an event."""
        return len(self.findings)

    def request_lookups(self, lookups: LookupRequest, ledger: Ledger) -> None:
        """What is kept, and what happened since."""
        lookups.want_findings(self.seen.number)

    def apply(self, ledger: Ledger, now: int) -> list[Finding]:
        """Those that were not kept before and still hold."""
        seen = ledger.seen
        if seen.findings is None:
            raise NotLookedUp
        if not self._is_about(ledger.experiment) or seen.observed_since or ledger.log.last_disturbed > self.seen.number:
            return []
        held = {(finding.kind, finding.arm) for finding in seen.findings}
        ended = [disturbance for event in seen.audited_since for disturbance in disturbances_of(event)]
        kept = [
            finding
            for finding in self.findings
            if (finding.kind, finding.arm) not in held and not any(disturbance.ends(finding) for disturbance in ended)
        ]
        note_findings(ledger, seen.findings, kept, now)
        return kept

    def _is_about(self, experiment: Experiment) -> bool:
        """Is it under way, and not another one that took the key of one that was deleted?"""
        return experiment.id == self.seen.experiment and experiment.status in ("running", "paused")


def note_findings(ledger: Ledger, held: list[Finding], new: list[Finding], now: int) -> None:
    """Write findings down as events; the one that leaves a single arm names it."""
    best = best_of(ledger.arms, [*held, *new])
    is_new = best is not None and best_of(ledger.arms, held) is None
    last = next((one for one in reversed(new) if one.kind == "separated"), None)
    for finding in new:
        completes: dict[str, Json] = {"best": best} if is_new and finding is last else {}
        ledger.note(EVENT_KINDS[finding.kind], finding.details() | completes, now, finding.arm)
