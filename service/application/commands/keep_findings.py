"""Keep what was shown: findings become events of the history, unless what they rest on was disturbed since they were seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.domain.findings import EVENT_KINDS, Finding, disturbances_of
from service.domain.lookups import NotLookedUp

if TYPE_CHECKING:
    from service.domain import Experiment, ExperimentVersion
    from service.domain.lookups import LookupRequest
    from service.engine.ledger import Ledger


@dataclass(frozen=True, slots=True)
class KeepFindings:
    """Findings as seen at a version that was stored. They need not be shown any more: a rejection that was valid stays so."""

    seen: ExperimentVersion
    findings: list[Finding]

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
        for finding in kept:
            ledger.note(EVENT_KINDS[finding.kind], finding.details(), now, finding.arm)
        return kept

    def _is_about(self, experiment: Experiment) -> bool:
        """Is it under way, and not another one that took the key of one that was deleted?"""
        return experiment.id == self.seen.experiment and experiment.status in ("running", "paused")
