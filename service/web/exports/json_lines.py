"""Exports as JSON lines: an object a line, with every column by its name, null where there is no value."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec

from service.engine.clock import text_of_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.web.exports.export_schema import Column

_encoder = msgspec.json.Encoder()
# What JSON may hold as it is, and many a reader of lines takes for the end of one.
_LINE_ENDS = {"\x85".encode(): rb"\u0085", "\u2028".encode(): rb"\u2028", "\u2029".encode(): rb"\u2029"}


class JsonLines:
    """A file that is written row by row."""

    media_type = "application/x-ndjson"

    def __init__(self, columns: Sequence[Column]) -> None:
        self._names = [column.name for column in columns]
        self._times = [place for place, column in enumerate(columns) if column.type == "time"]

    def begin(self) -> bytes:
        """Every line names its values: nothing goes before them."""
        return b""

    def add(self, rows: Sequence[tuple[Any, ...]]) -> bytes:
        """An object for each row, times as ISO 8601."""
        names, times = self._names, self._times
        objects = []
        for row in rows:
            values = list(row)
            for place in times:
                if values[place] is not None:
                    values[place] = text_of_time(values[place])
            objects.append(dict(zip(names, values, strict=True)))
        try:
            lines = _encoder.encode_lines(objects)
        except OverflowError:  # an integer beyond 64 bits in an arm's value
            plain = (json.dumps(one, separators=(",", ":"), ensure_ascii=False, allow_nan=False) for one in objects)
            lines = "".join(f"{line}\n" for line in plain).encode()
        for end, escaped in _LINE_ENDS.items():
            lines = lines.replace(end, escaped)
        return lines

    def finish(self) -> bytes:
        """Nothing follows the last line."""
        return b""
