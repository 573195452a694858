"""What can go wrong, as a tree. The web layer gives each class its status; nothing here knows HTTP.

BestArmError
├── NotFound
│   ├── ExperimentNotFound
│   ├── ArmNotFound
│   ├── AssignmentNotFound
│   ├── UnitNotFound
│   ├── ApiKeyNotFound
│   ├── WebhookNotFound
│   ├── DeliveryNotFound
│   └── ObservationNotFound
├── Conflict
│   ├── ExperimentExists
│   ├── ArmExists
│   ├── VersionConflict
│   ├── IllegalTransition
│   ├── ExperimentNotRunning
│   ├── ExperimentPruned
│   ├── LastActiveArm
│   ├── ArmConcluded
│   ├── NoRecommendation
│   ├── TooManyArms
│   └── RewardConflict
├── Invalid
│   ├── InvalidValue
│   ├── UnitRequired
│   ├── NotSticky
│   └── IdempotencyKeyReused
├── Unauthorized
├── Forbidden
├── RateLimited
├── TooManyStreams
├── Overloaded
├── ExtraMissing
├── IdentityProviderUnavailable
├── DatabaseUnavailable
│   ├── ExperimentLocked
│   └── DatabaseLocked
└── DatabaseNotMigrated
"""

from __future__ import annotations

from typing import Any


class BestArmError(Exception):
    """Anything the service itself refuses or cannot do; the message is meant for the caller."""

    reason: str | None = None
    """What was wrong with the key, if it was that: for the metrics, not for the caller."""

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
    """No experiment has this key, or none that the caller may see: to them it is the same."""

    def __init__(self, key: str, reason: str | None = None) -> None:
        super().__init__(f"There is no experiment {key!r}.")
        self.reason = reason


class ArmNotFound(NotFound):
    """The experiment has no arm with this key."""

    def __init__(self, experiment: str, arm: str) -> None:
        super().__init__(f"Experiment {experiment!r} has no arm {arm!r}.")


class AssignmentNotFound(NotFound):
    """The experiment has no assignment with this id."""

    def __init__(self, experiment: str, assignment: str, *, pruned: bool = False) -> None:
        why = " It was pruned: none of its assignments is left." if pruned else ""
        super().__init__(f"Experiment {experiment!r} has no assignment {assignment!r}.{why}")


class UnitNotFound(NotFound):
    """The experiment has no assignment of this unit."""

    def __init__(self, experiment: str, unit: str) -> None:
        super().__init__(f"Experiment {experiment!r} has no assignment of unit {unit!r}.")


class ApiKeyNotFound(NotFound):
    """No key of the API has this id."""

    def __init__(self, key_id: str) -> None:
        super().__init__(f"There is no key {key_id!r}.")


class WebhookNotFound(NotFound):
    """No webhook has this id."""

    def __init__(self, webhook_id: str) -> None:
        super().__init__(f"There is no webhook {webhook_id!r}.")


class DeliveryNotFound(NotFound):
    """The webhook has no message with this id, or it was removed."""

    def __init__(self, webhook_id: str, delivery_id: str) -> None:
        super().__init__(f"Webhook {webhook_id!r} has no message {delivery_id!r}.")


class ObservationNotFound(NotFound):
    """The experiment has no observation with this id."""

    def __init__(self, experiment: str, observation: str, *, pruned: bool = False) -> None:
        why = " It was pruned: none of its observations is left." if pruned else ""
        super().__init__(f"Experiment {experiment!r} has no observation {observation!r}.{why}")


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


class ExperimentPruned(Conflict):
    """Its single draws, rewards and observations were given up: what was counted of them can change no more."""

    def __init__(self, key: str) -> None:
        super().__init__(f"Experiment {key!r} was pruned: its assignments are gone, and its counts can change no more.")


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


class NotSticky(Invalid):
    """Only experiments whose units keep their arms can be evaluated as flags."""


class IdempotencyKeyReused(Invalid):
    """The key was used before with another body."""


class Unauthorized(BestArmError):  # noqa: N818 - see NotFound
    """No key came with the request, or none that is known and still good."""

    def __init__(self, reason: str, detail: str = "Send a key that is good here: `Authorization: Bearer ba_…`.") -> None:
        super().__init__(detail)
        self.reason = reason


class Forbidden(BestArmError):  # noqa: N818 - see NotFound
    """The key is good, but not for this."""

    def __init__(self, detail: str, reason: str = "scope") -> None:
        super().__init__(detail)
        self.reason = reason


class RateLimited(BestArmError):  # noqa: N818 - see NotFound
    """The key sends more than it may: `quota` requests in `window` seconds. It has to wait for so many `seconds`."""

    def __init__(self, seconds: int, quota: int, window: int) -> None:
        super().__init__("This key has sent more requests than it may; wait a moment.")
        self.seconds, self.quota, self.window = seconds, quota, window


class TooManyStreams(BestArmError):  # noqa: N818 - see NotFound
    """The key watches as much as it may."""


class Overloaded(BestArmError):  # noqa: N818 - see NotFound
    """Too many requests wait already; try again in a moment."""


class ExtraMissing(BestArmError):  # noqa: N818 - see NotFound
    """What is asked for needs an extra of the package that is not installed."""


class IdentityProviderUnavailable(BestArmError):  # noqa: N818 - see NotFound
    """Who vouches for accounts does not answer, or not as it should."""


class DatabaseUnavailable(BestArmError):  # noqa: N818 - see NotFound
    """The database does not answer; nothing was recorded, or it cannot be known whether it was."""


class ExperimentLocked(DatabaseUnavailable):
    """Another session of the database holds what would have to be written, and does not let go of it."""

    def __init__(self) -> None:
        super().__init__("Another session of the database has locked this experiment; try again in a moment.")


class DatabaseLocked(DatabaseUnavailable):
    """Somebody holds the only write lock of the database, and does not let go of it; nothing was recorded."""

    def __init__(self) -> None:
        super().__init__("Another program has locked the database; try again in a moment.")


class DatabaseNotMigrated(BestArmError):  # noqa: N818 - see NotFound
    """The database is at a migration that this release may not run on."""


class WriteRefused(Exception):  # noqa: N818 - a defect of ours in one of several requests, told apart by serving them singly
    """The database refused to write some row of a group. Nothing of the group was written."""
