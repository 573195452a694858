"""The statements that are sent to a database through SQLAlchemy, for tests that count them."""

from __future__ import annotations

from typing import Any

from sqlalchemy import event

from service.storage.database import Database


class Statements:
    """`with` it, what is sent meanwhile is listed; beginnings of transactions are not."""

    def __init__(self, database: Database) -> None:
        self._engine = database.engine.sync_engine
        self._sent: list[str] = []

    def _note(self, _connection: object, _cursor: object, statement: str, *_: Any) -> None:  # noqa: ANN401 - SQLAlchemy's
        if not statement.startswith("BEGIN"):
            self._sent.append(statement)

    def __enter__(self) -> list[str]:
        event.listen(self._engine, "before_cursor_execute", self._note)
        return self._sent

    def __exit__(self, *_: object) -> None:
        event.remove(self._engine, "before_cursor_execute", self._note)
