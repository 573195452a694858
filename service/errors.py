"""What can go wrong, as a tree. The web layer gives each class its status; nothing here knows HTTP.

BestArmError
├── NotFound
│   ├── ExperimentNotFound
│   ├── ArmNotFound
│   ├── AssignmentNotFound
│   └── ObservationNotFound
├── Conflict
│   ├── ExperimentExists
│   ├── ArmExists
│   ├── VersionConflict
│   ├── IllegalTransition
│   ├── ExperimentNotRunning
│   ├── LastActiveArm
│   ├── ArmConcluded
│   ├── NoRecommendation
│   ├── TooManyArms
│   └── RewardConflict
├── Invalid
│   ├── InvalidValue
│   ├── UnitRequired
│   └── IdempotencyKeyReused
├── Overloaded
├── DatabaseUnavailable
└── DatabaseNotMigrated
"""

from __future__ import annotations

from typing import Any


class BestArmError(Exception):
    """Anything the service itself refuses or cannot do; the message is meant for the caller."""

    def __reduce__(self) -> tuple[Any, ...]:
        """As it stands, because it travels between processes, and what makes an error is not always its message."""
        return _restored, (type(self), self.args, self.__dict__)


def _restored(kind: type[BestArmError], arguments: tuple[Any, ...], attributes: dict[str, Any]) -> BestArmError:
    error = kind.__new__(kind)
    error.args = arguments
    error.__dict__.update(attributes)
    return error


class NotFound(BestArmError):  # noqa: N818 - the caller's mistakes read as conditions, not as failures
    """The thing named does not exist."""


class ExperimentNotFound(NotFound):
    """No experiment has this key."""

    def __init__(self, key: str) -> None:
        super().__init__(f"There is no experiment {key!r}.")


class ArmNotFound(NotFound):
    """The experiment has no arm with this key."""

    def __init__(self, experiment: str, arm: str) -> None:
        super().__init__(f"Experiment {experiment!r} has no arm {arm!r}.")


class AssignmentNotFound(NotFound):
    """The experiment has no assignment with this id."""

    def __init__(self, experiment: str, assignment: str) -> None:
        super().__init__(f"Experiment {experiment!r} has no assignment {assignment!r}.")


class ObservationNotFound(NotFound):
    """The experiment has no observation with this id."""

    def __init__(self, experiment: str, observation: str) -> None:
        super().__init__(f"Experiment {experiment!r} has no observation {observation!r}.")


class Conflict(BestArmError):  # noqa: N818 - see NotFound
    """The request is fine, the present state does not allow it."""


class ExperimentExists(Conflict):
    """The key is taken."""

    def __init__(self, key: str) -> None:
        super().__init__(f"There is already an experiment {key!r}.")


class ArmExists(Conflict):
    """The arm's key is taken."""

    def __init__(self, experiment: str, arm: str) -> None:
        super().__init__(f"Experiment {experiment!r} already has an arm {arm!r}.")


class VersionConflict(Conflict):
    """Somebody changed it since the caller looked."""


class IllegalTransition(Conflict):
    """The experiment cannot go from its status to the wanted one."""


class ExperimentNotRunning(Conflict):
    """The experiment's status does not take asks, or rewards, now."""


class LastActiveArm(Conflict):
    """One active arm must remain."""


class ArmConcluded(Conflict):
    """The arm that a concluded experiment serves cannot be disabled."""


class NoRecommendation(Conflict):
    """There is no reward yet to recommend an arm by."""


class TooManyArms(Conflict):
    """The experiment has more arms than this can be done for."""


class RewardConflict(Conflict):
    """The assignment already has another reward, or was voided."""


class Invalid(BestArmError):  # noqa: N818 - see NotFound
    """A value that can be read but does not make sense here."""


class InvalidValue(Invalid):
    """A field's value is out of its range; `pointer` names the field as a JSON pointer."""

    def __init__(self, pointer: str, detail: str) -> None:
        super().__init__(detail)
        self.pointer = pointer


class UnitRequired(Invalid):
    """A sticky experiment needs to know who asks."""


class IdempotencyKeyReused(Invalid):
    """The key was used before with another body."""


class Overloaded(BestArmError):  # noqa: N818 - see NotFound
    """Too many requests wait already; try again in a moment."""


class DatabaseUnavailable(BestArmError):  # noqa: N818 - see NotFound
    """The database does not answer; nothing was recorded, or it cannot be known whether it was."""


class DatabaseNotMigrated(BestArmError):  # noqa: N818 - see NotFound
    """The database is not at the newest migration."""


class WriteRefused(Exception):  # noqa: N818 - a defect of ours in one of several requests, told apart by serving them singly
    """The database refused to write some row of a group. Nothing of the group was written."""
