"""Arms of a live experiment: add, change, disable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from service.application.commands.experiments import Described, SettingsCommand, check_arms, described
from service.application.commands.idempotency import OnceCommand
from service.domain import Arm, event_details
from service.domain.limits import MOST_ARMS
from service.errors import (
    ArmConcluded,
    ArmExists,
    ArmNotFound,
    IllegalTransition,
    InvalidValue,
    LastActiveArm,
    VersionConflict,
)

if TYPE_CHECKING:
    from service.application.commands.idempotency import Once, Rendered
    from service.application.live.reader import WritingReader
    from service.domain import ArmRecord
    from service.domain.callers import Access
    from service.engine.ledger import Ledger


ArmCondition = Callable[[Described, Arm], bool]
"""Is the arm, or the experiment as a whole, still what the caller saw?"""


@dataclass(frozen=True, slots=True)
class AddArm(SettingsCommand):
    """One more arm, at the end."""

    arm: Arm

    def apply(self, ledger: Ledger, now: int) -> ArmRecord:
        """The new arm."""
        _require_changeable(ledger)
        if ledger.position_of(self.arm.key) is not None:
            raise ArmExists(ledger.experiment.key, self.arm.key)
        if len(ledger.arms) >= MOST_ARMS:
            raise InvalidValue("", f"An experiment has at most {MOST_ARMS:,} arms.")
        added = 1 + max(arm.added for arm in ledger.arms)
        arm = replace(self.arm, position=len(ledger.arms), added=added)
        check_arms([*ledger.arms, arm], "/min_share")
        ledger.add_arm(arm, event_details.arm_details(arm), now)
        return ledger.records([arm.position])[0]


@dataclass(frozen=True, slots=True)
class ChangeArm(SettingsCommand):
    """Another name, value, floor or status for an arm."""

    key: str
    fields: dict[str, Any]
    condition: ArmCondition | None = None

    def apply(self, ledger: Ledger, now: int) -> ArmRecord:
        """The arm afterwards; a change of nothing leaves no trace."""
        position = ledger.position_of(self.key)
        if position is None:
            raise ArmNotFound(ledger.experiment.key, self.key)
        if self.condition is not None and not self.condition(described(ledger), ledger.arms[position]):
            raise VersionConflict(f"Arm {self.key!r} is not what it was any more: read it again.")
        _require_changeable(ledger)
        arm = ledger.arms[position]
        changed = replace(arm, **self.fields)
        floor = "/min_share" if arm.active else "/status"
        check_arms([*ledger.arms[:position], changed, *ledger.arms[position + 1 :]], floor)
        if arm.active and not changed.active:
            if ledger.experiment.concluded_arm == position:
                raise ArmConcluded(f"Arm {self.key!r} is what the concluded experiment serves.")
            if sum(one.active for one in ledger.arms) == 1:
                raise LastActiveArm(f"Arm {self.key!r} is the last active one.")
        details = event_details.change_details(arm, changed)
        if details["after"]:
            ledger.change_arm(changed, details, now)
        return ledger.records([position])[0]


def _require_changeable(ledger: Ledger) -> None:
    if ledger.experiment.status == "archived":
        raise IllegalTransition(f"Experiment {ledger.experiment.key!r} is archived and cannot be changed.")


async def add_arm(context: WritingReader, access: Access, arm: Arm, once: Once[ArmRecord]) -> Rendered:
    """A new arm, once per idempotency key."""
    return await context.writer.submit(access, OnceCommand(once, AddArm(arm)))


async def change_arm(context: WritingReader, access: Access, command: ChangeArm) -> ArmRecord:
    """A changed arm."""
    return await context.writer.submit(access, command)
