"""Replay of what people did: all that is left to check once the single draws of an experiment were pruned.

Settings, arms and epochs follow from the events that stay, and are compared with what is stored. Corrections and voids must be
possible by themselves, findings that are stored must have been told and not ended. Numbers of events may be missing only before
the pruning. The sums of the arms follow from nothing that is left: they must be those that the pruning has left a fingerprint of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from service.application.reads.differences import Difference, compare, plain
from service.application.reads.repeated_changes import begun, named_failures, repeat_change, sign_as
from service.domain import STEPS, TRAITS, ArmRecord, Event, Progress, fingerprint_of
from service.domain.findings import disturbances_of, finding_of

if TYPE_CHECKING:
    from service.domain import StepKind
    from service.domain.findings import Finding, FindingKind
    from service.engine.ledger import Ledger

# What an observation's events do, in the words of the table of steps.
_OBSERVATION_STEPS: dict[str, StepKind] = {"observation_edit": "correction", "observation_void": "void"}


class AuditReplay:
    """Follows the events that are left, in their order."""

    def __init__(self, stored: Progress, records: list[ArmRecord], *, pruning: bool) -> None:
        self._stored, self._records = stored, records
        self.pruning = pruning
        """Is some of what was pruned still to go?"""
        self.events = 0
        self._ledger: Ledger | None = None
        self._gaps = stored.experiment.pruned_at is not None
        """May numbers be missing here? They may until the event that says so."""
        self._fingerprint: object = None
        self._told: dict[int, Finding] = {}
        """The findings that were told and not ended since, by their sequence numbers."""

    def check(self, event: Event) -> None:
        """Repeat one event, as far as that is possible."""
        self.events += 1
        if self._ledger is None:
            self._ledger = begun(event, self._stored.experiment.id)
            return
        ledger = self._ledger
        if event.sequence <= ledger.version or (event.sequence != ledger.version + 1 and not self._gaps):
            raise Difference(f"Event {ledger.version + 1} is missing: event {event.sequence} follows.")
        if event.at < ledger.as_of:
            raise Difference(f"Event {event.sequence} ({event.kind}) happened before the one before it.")
        ledger.version = ledger.stored_version = event.sequence - 1
        with named_failures(event):
            self._follow(ledger, event)
        ledger.version, ledger.as_of = event.sequence, event.at
        ledger.forget_changes()
        if event.kind == "pruned":
            self._gaps, self._fingerprint = False, (event.details or {}).get("statistics")

    def _follow(self, ledger: Ledger, event: Event) -> None:
        family = TRAITS[event.kind].family
        if family == "step":
            _require_step(event, cast("StepKind", event.kind))
        elif family == "observation step":
            _require_step(event, _OBSERVATION_STEPS[event.kind])
        elif family not in ("draw", "observation"):
            sign_as(ledger, event)
            repeat_change(ledger, event, family)
            again = ledger.log.last_event
            if event != again:
                compare(f"Event {event.sequence} ({event.kind})", plain(event), plain(again))
        for disturbance in disturbances_of(event):
            self._told = {number: finding for number, finding in self._told.items() if not disturbance.ends(finding)}
        finding = finding_of(event)
        if finding is not None:
            self._told[event.sequence] = finding

    def finish(self, findings: dict[tuple[FindingKind, int], Finding], *, traffic_left: bool) -> None:
        """What is stored must be what is left of the history, as far as it goes."""
        ledger, stored = self._ledger, self._stored
        if ledger is None:
            raise Difference("There is no history.")
        for (kind, arm), finding in findings.items():
            compare(f"Finding {kind} about arm {arm}", plain(finding), plain(self._told.get(finding.sequence)))
        compare("The experiment", _settings(stored), _settings(ledger.progress))
        if len(self._records) != len(ledger.arms):
            raise Difference(f"There are {len(self._records)} arms stored, but {len(ledger.arms)} in the history.")
        for record, again in zip(self._records, ledger.arms, strict=True):
            compare(f"Arm {record.arm.key!r}", plain(record.arm), plain(again))
        if stored.experiment.pruned_at is None:
            return
        if traffic_left and not self.pruning:
            raise Difference("There are single draws, rewards or observations left, although it was pruned.")
        found = fingerprint_of(self._records)
        if self._fingerprint != found:
            raise Difference("The sums of the arms are not those that they were when it was pruned.")


def _require_step(event: Event, kind: StepKind) -> None:
    """The step leads from the state before to the state after, whatever led there."""
    before, after, rule = event.before, event.after, STEPS[kind]
    possible = before is not None and after is not None and before.status in rule.allowed_from and after.status == rule.leads_to
    if not possible:
        raise Difference(f"Event {event.sequence}: a {kind} cannot lead from {plain(before)} to {plain(after)}.")


def _settings(progress: Progress) -> dict[str, Any]:
    """What of an experiment follows from what people did."""
    kept = plain(progress)
    return {name: kept[name] for name in ("experiment", "version", "as_of", "epoch")}
