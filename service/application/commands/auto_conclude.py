"""Conclude by itself: an experiment that was told to ends once its verdict is what it waits for and it has enough rewards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from service.application.commands.keep_findings import note_findings
from service.application.commands.lifecycle import LifecycleMove
from service.domain.limits import MOST_FINDINGS_AT_ONCE
from service.domain.lookups import NotLookedUp
from service.inference.certainty import certainty_of, leader_of
from service.inference.verdict import Verdict, new_findings, verdict

if TYPE_CHECKING:
    from service.domain import ConcludeWhen
    from service.domain.callers import Scope
    from service.domain.lookups import LookupRequest
    from service.engine.ledger import Ledger


@dataclass(frozen=True, slots=True)
class ConcludeIfSure:
    """A command like any other: written only if the version it was decided on is stored, so an experiment concludes once."""

    scope: ClassVar[Scope] = "manage"
    by_unit: ClassVar[bool] = False

    @property
    def weight(self) -> int:
        """One request."""
        return 1

    def request_lookups(self, lookups: LookupRequest, ledger: Ledger) -> None:
        """What was found before."""
        lookups.want_findings(ledger.version)

    def apply(self, ledger: Ledger, now: int) -> bool:
        """Did it conclude? What that rests on is kept first, so that the history of a conclusion says why."""
        experiment, arms = ledger.experiment, ledger.arms
        rule = experiment.conclude_when
        if rule is None or experiment.status not in ("running", "paused"):
            return False
        if sum(one.matured.count for one in ledger.statistics) < rule.min_observations:
            return False
        held = ledger.seen.findings
        if held is None:
            raise NotLookedUp
        if ledger.log.last_disturbed > ledger.stored_version:
            return False  # a request decided before this one ended what was read; the next look sees what holds then
        leader = leader_of(experiment.reward, arms, ledger.statistics)
        sure = certainty_of(experiment, arms, ledger.statistics, leader)
        found = verdict(experiment, arms, sure, leader, held)
        if found.arm is None or not _is_met(rule, found, experiment.control):
            return False
        unkept = new_findings(experiment, arms, sure, leader, held)
        note_findings(ledger, held, unkept, now)
        if len(unkept) == MOST_FINDINGS_AT_ONCE:
            return False  # among so many arms more is shown than is kept at once; the next look goes on
        LifecycleMove("conclude", arms[found.arm].key, by="conclude_when").apply(ledger, now)
        return True


def _is_met(rule: ConcludeWhen, found: Verdict, control: int | None) -> bool:
    if rule.beats_control:
        return found.reason in ("beats_control", "separated") and found.arm != control
    return found.decided if rule.decided else found.separated
