"""What people did to an experiment, done again to a ledger as its event says: the creation, settings, arms, notes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from service.application.reads.differences import Difference
from service.domain import ArmRecord, ArmStatistics, Event, IllegalStep, Progress, event_details
from service.domain.callers import SERVICE, Caller
from service.engine.ledger import Ledger


def begun(event: Event, experiment_id: int) -> Ledger:
    """The experiment as its first event made it."""
    if event.sequence != 1 or event.kind != "created" or event.details is None:
        raise Difference(f"The history does not begin with the creation: event {event.sequence} is {event.kind}.")
    with named_failures(event):
        experiment, arms = event_details.created_from(event.details, experiment_id)
        progress = Progress(experiment, version=1, as_of=event.at, draws=0, epoch=1)
        return Ledger(progress, [ArmRecord(arm, ArmStatistics()) for arm in arms])


def sign_as(ledger: Ledger, event: Event) -> None:
    """What is done to the ledger next is done by whoever the event names."""
    actor: Any = (event.details or {}).get("actor")
    ledger.log.caller = SERVICE if actor is None else Caller(frozenset(), actor["id"], actor["label"])


def repeat_change(ledger: Ledger, event: Event, family: str | None) -> None:
    """Do again what an event of one of these families says was done."""
    details: dict[str, Any] = dict(event.details or {})
    if family == "settings":
        changed = event_details.changed_experiment(ledger.experiment, details)
        details |= event_details.change_details(ledger.experiment, changed)
        ledger.change_settings(event.kind, changed, details, event.at)
    elif family == "new arm":
        ledger.add_arm(event_details.arm_from(details["arm"]), details, event.at)
    elif family == "arm" and event.arm is not None:
        arm = ledger.arms[event.arm]
        changed_arm = event_details.changed_arm(arm, details)
        ledger.change_arm(changed_arm, event_details.change_details(arm, changed_arm), event.at)
    elif family == "note":
        ledger.note(event.kind, details, event.at, event.arm)
    else:
        raise Difference(f"Event {event.sequence} is of no known kind: {event.kind!r}.")


@contextmanager
def named_failures(event: Event) -> Iterator[None]:
    """What cannot be done again is a difference, too."""
    try:
        yield
    except IllegalStep as impossible:
        raise Difference(f"Event {event.sequence}: {impossible}.") from impossible
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, msgspec.MsgspecError) as unreadable:
        raise Difference(f"Event {event.sequence} ({event.kind}) cannot be repeated: {unreadable!r}.") from unreadable
