"""What happens to the instance and not to one experiment of it, which may be gone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from service.domain.experiment import Json

LogKind: TypeAlias = Literal[
    "experiment_deleted",
    "experiment_loaded",
    "experiment_pruned",
    "key_created",
    "key_revoked",
    "key_rotated",
    "webhook_created",
    "webhook_changed",
    "webhook_rotated",
    "webhook_disabled",
    "webhook_deleted",
]


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One entry of the instance's log."""

    number: int
    at: int
    kind: LogKind
    details: dict[str, Json]
