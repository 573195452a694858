"""Exports as CSV (RFC 4180): UTF-8, a first line of names, lines that end in CR LF.

Numbers are the shortest digits that read back to the same double, times ISO 8601 in UTC, booleans true and false, JSON its text.
A value that is not there is an empty field, and no text is empty. Texts of callers are defused
(service/domain/spreadsheet_text.py).
"""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

from service.domain.spreadsheet_text import defused
from service.engine.clock import text_of_time
from service.web.exports.exported_values import json_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from service.web.exports.export_schema import Column


def _truth(value: bool) -> str:  # noqa: FBT001 - a value, not a switch
    return "true" if value else "false"


class CsvText:
    """A file that is written row by row."""

    media_type = "text/csv; charset=utf-8; header=present"

    def __init__(self, columns: Sequence[Column]) -> None:
        self._buffer = io.StringIO(newline="")
        self._writer = csv.writer(self._buffer)
        self._names = [column.name for column in columns]
        written = enumerate(map(_written_by, columns))
        self._changed: list[tuple[int, Callable[[Any], str]]] = [(place, how) for place, how in written if how is not None]

    def begin(self) -> bytes:
        """The line of names."""
        self._writer.writerow(self._names)
        return self._taken()

    def add(self, rows: Sequence[tuple[Any, ...]]) -> bytes:
        """A line for each row, with texts that a spreadsheet would take for formulas defused."""
        changed, write = self._changed, self._writer.writerow
        for row in rows:
            values = list(row)
            for place, how in changed:
                if values[place] is not None:
                    values[place] = how(values[place])
            write(values)
        return self._taken()

    def finish(self) -> bytes:
        """Nothing follows the last line."""
        return b""

    def _taken(self) -> bytes:
        text = self._buffer.getvalue()
        self._buffer.seek(0)
        self._buffer.truncate()
        return text.encode()


def _written_by(column: Column) -> Callable[[Any], str] | None:
    """How a value of this column is written; None as it is."""
    if column.type == "time":
        return text_of_time
    if column.type == "boolean":
        return _truth
    if column.type == "json":
        return json_text
    return defused if column.foreign else None
