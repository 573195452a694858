"""What happened to an experiment in memory since its changes were last taken to be written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from service.domain import TRAITS, Assignment, Batch, Changes, Event, ObservationRecord, StoredReply, TakenStep
from service.domain.callers import SERVICE, Caller
from service.domain.findings import Disturbance, Findings, disturbances_of
from service.engine import snapshots

if TYPE_CHECKING:
    from service.engine.ledger import Ledger

# So many draws at most are left out of their arms' rows for the time being (docs/decisions/0007).
_MOST_UNCOUNTED = 16


class ChangeLog:
    """Filled by the ledger, emptied by `take`. It decides nothing."""

    def __init__(self) -> None:
        self.caller: Caller = SERVICE
        """Whose request is being decided: the audit log names them."""
        self.last_disturbed = 0
        """The sequence number of the last event here that ended findings, taken or not."""
        self.clear()

    def clear(self) -> None:
        """Forget all that was recorded."""
        self._clear_draws()
        self.steps: list[TakenStep] = []
        self.events: list[Event] = []
        self._last: Event | TakenStep | None = None
        self.touched: set[int] = set()
        """Arms of which more changed than what a draw changes."""
        self.redefined: set[int] = set()
        self.added: list[int] = []
        self.batches: list[Batch] = []
        self.observations: list[ObservationRecord] = []
        self.changed_observations: dict[str, ObservationRecord] = {}
        self.replies: list[StoredReply] = []
        self.settings_changed = False
        self.findings = Findings()
        self.disturbances: list[Disturbance] = []
        self._moved: set[int] = set()
        self._restated: set[int] = set()

    def _clear_draws(self) -> None:
        self.drawn: list[Assignment] = []
        self.drawn_arms: set[int] = set()
        self.imputed_arms: set[int] = set()
        """Those of them whose draws count as a reward for the time being."""

    def record(self, event: Event) -> None:
        """An event that is neither a draw nor a step."""
        event = self._signed(event)
        self.events.append(event)
        self._last = event
        self._follow_findings(event)

    def record_step(self, step: TakenStep, stored_version: int) -> None:
        """A step. One row cannot be written twice by one statement, so a second write of an assignment is noted as such."""
        assignment, moved = step.assignment, self._moved
        draw = assignment.draw
        if draw in moved or assignment.sequence > stored_version:
            self._restated.add(draw)
        moved.add(draw)
        if step.kind != "reward":
            if self.caller.id is not None and TRAITS[step.kind].audited:
                step = structs.replace(step, details={"actor": self.caller.actor})
            self._follow_findings(step.event)
        self.steps.append(step)
        self._last = step

    def _signed(self, event: Event) -> Event:
        """With who did it, where that is a matter of the audit log."""
        if self.caller.id is None or not TRAITS[event.kind].audited:
            return event
        return structs.replace(event, details={**(event.details or {}), "actor": self.caller.actor})

    @property
    def last_event(self) -> Event | None:
        """Of the steps and the other events; a draw's is made of its assignment."""
        return self._last.event if isinstance(self._last, TakenStep) else self._last

    def _follow_findings(self, event: Event) -> None:
        """What was found in this transaction goes again if this event ends it; of what is stored, it is noted."""
        ended = disturbances_of(event)
        if ended:
            self.disturbances += ended
            self.last_disturbed = event.sequence
        self.findings.follow(event)

    def take(self, ledger: Ledger) -> Changes | None:
        """All changes since the last time, to be written; None if there are none."""
        if not self.drawn and not self.steps and not self.events and not self.replies:
            return None
        taken, thin = snapshots.due(ledger) if ledger.version >= ledger.next_snapshot else ([], False)
        if self.drawn and not (self.steps or self.events or self.touched or self.replies or taken):
            return self._take_draws(ledger)
        if self.drawn or self.steps or self.events:  # a reply alone moves no version: what other workers know must stay as it is
            self._count_uncounted(ledger)
        self.touched.difference_update(self.added)
        self.redefined.difference_update(self.added)
        self.imputed_arms.difference_update(self.touched, self.added)
        self.drawn_arms.difference_update(self.touched, self.added, self.imputed_arms)
        changes = Changes(
            progress=ledger.progress,
            arms=ledger.records(self.touched),
            drawn_arms=ledger.records(self.drawn_arms),
            imputed_arms=ledger.records(self.imputed_arms),
            redefined=ledger.records(self.redefined),
            new_arms=ledger.records(self.added),
            drawn=self.drawn,
            steps=self.steps,
            events=self.events,
            restated=[ledger.seen.assignments[draw] for draw in self._restated] if self._restated else [],
            batches=self.batches,
            observations=self.observations,
            changed_observations=list(self.changed_observations.values()),
            replies=self.replies,
            settings_changed=self.settings_changed,
            snapshots=taken,
            thin=thin,
            disturbances=self.disturbances,
            findings=list(self.findings.held.values()),
        )
        self.clear()
        return changes

    def _take_draws(self, ledger: Ledger) -> Changes:
        """Nothing but draws. A lone one is left out of the stored counts of its arm for the time being."""
        if len(self.drawn) == 1 and not self.imputed_arms and len(ledger.uncounted) < _MOST_UNCOUNTED:
            ledger.uncounted = (*ledger.uncounted, self.drawn[0].arm)
            changes = Changes(ledger.progress, drawn=self.drawn)
        else:
            self._count_uncounted(ledger)
            self.drawn_arms -= self.imputed_arms
            changes = Changes(
                ledger.progress,
                drawn_arms=ledger.records(self.drawn_arms),
                imputed_arms=ledger.records(self.imputed_arms),
                drawn=self.drawn,
            )
        self._clear_draws()
        return changes

    def _count_uncounted(self, ledger: Ledger) -> None:
        """Let the rows of all arms have the counts they should have."""
        if ledger.uncounted:
            self.drawn_arms.update(ledger.uncounted)
            ledger.uncounted = ()
