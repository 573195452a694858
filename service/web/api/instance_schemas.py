"""What answers about the instance look like."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from service.domain import LogKind
from service.web.api.answer_schemas import ActorOut, Answer


class LogEntryOut(Answer):
    """One entry of the instance's log."""

    id: int
    kind: LogKind
    at: datetime
    actor: ActorOut | None
    details: dict[str, Any]


class LogPage(Answer):
    """A page of the instance's log, newest first."""

    entries: list[LogEntryOut]
    next_page_token: str | None
