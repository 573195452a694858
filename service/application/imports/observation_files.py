"""Files of past data as lines, a bounded number at once: CSV, JSON lines and Parquet."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from itertools import islice
from typing import IO, TYPE_CHECKING, Any, Protocol

import msgspec

from service.application.imports.file_columns import FIELDS
from service.application.imports.observation_lines import Line, invalid, line_of_fields, time_text_of
from service.domain.file_formats import require_format
from service.domain.limits import LONGEST_LINE_BYTES
from service.domain.spreadsheet_text import undefused
from service.errors import InvalidValue

if TYPE_CHECKING:
    from pathlib import Path

    from service.application.imports.file_columns import FileColumns
    from service.domain.file_formats import FileFormat

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
# One transaction each: about as many as are recorded while another request may wait.
LINES_AT_ONCE = 1_000


class ObservationFile(Protocol):
    """A file that is read once from its beginning."""

    length: int
    """In bytes or rows: what `position` comes to."""

    @property
    def position(self) -> int:
        """How far it has been read."""
        ...

    def batches(self) -> Iterator[list[Line]]:
        """Its lines, LINES_AT_ONCE at most at once; empty ones are left out."""
        ...


@contextmanager
def opened_file(path: Path, wanted: FileFormat, columns: FileColumns) -> Iterator[ObservationFile]:
    """The file, until the block ends."""
    with path.open("rb") as file:
        if wanted == "csv":
            yield _CsvFile(file, columns)
        elif wanted == "jsonl":
            yield _JsonFile(file, columns)
        else:
            yield _ParquetFile(file, columns)


def in_batches(lines: Iterator[Line]) -> Iterator[list[Line]]:
    """LINES_AT_ONCE at most at once."""
    while batch := list(islice(lines, LINES_AT_ONCE)):
        yield batch


class _BytesFile:
    def __init__(self, file: IO[bytes], columns: FileColumns) -> None:
        self._file, self._columns = file, columns
        self.length = file.seek(0, io.SEEK_END)
        file.seek(0)

    @property
    def position(self) -> int:
        return self._file.tell()


class _CsvFile(_BytesFile):
    """RFC 4180, UTF-8, with a first line of names; texts that an export has defused are what they were."""

    def batches(self) -> Iterator[list[Line]]:
        return in_batches(self._lines())

    def _lines(self) -> Iterator[Line]:
        # Kept, because it closes the file when it goes.
        self._text = io.TextIOWrapper(self._file, encoding="utf-8-sig", errors="surrogateescape", newline="")
        rows = csv.reader(self._text)
        try:
            names = next(rows, [])
            places = self._columns.found_in(names)
            before = rows.line_num
            for row in rows:
                number, before = before + 1, rows.line_num
                if len(row) == len(names):
                    yield line_of_fields(number, {field: _typed(field, row[place]) for field, place in places.items()})
                elif row:
                    yield Line(number, invalid(f"The line has {len(row)} fields, and there are {len(names)} columns."))
        except csv.Error as broken:
            detail = f"From line {rows.line_num:,} on this is no CSV: {broken}. Is a quote missing?"
            raise InvalidValue("/file", detail) from broken


def _typed(field: str, text: str) -> object:
    """A field of CSV as the API would have it: nothing is written as an empty one."""
    if field == "reward":
        return float(text) if _NUMBER.fullmatch(text) else text or None
    if field == "arm":
        return text
    return undefused(text) or None


class _JsonFile(_BytesFile):
    """An object a line."""

    def batches(self) -> Iterator[list[Line]]:
        return in_batches(self._lines())

    def _lines(self) -> Iterator[Line]:
        fields = {self._columns.name_of(one): one for one in FIELDS}
        number = 0
        while text := self._file.readline(LONGEST_LINE_BYTES + 1):
            number += 1
            if len(text) > LONGEST_LINE_BYTES:
                yield Line(number, invalid(f"The line is longer than {LONGEST_LINE_BYTES // 1024} KiB."))
                while not text.endswith(b"\n") and (text := self._file.readline(LONGEST_LINE_BYTES)):
                    pass
            elif not text.isspace():
                yield self._line(number, text, fields)

    def _line(self, number: int, text: bytes, fields: dict[str, str]) -> Line:
        try:
            read = msgspec.json.decode(text, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError) as unreadable:
            return Line(number, invalid(f"{unreadable}."))
        if not self._columns.others_ignored and not read.keys() <= fields.keys():
            other = next(name for name in read if name not in fields)
            return Line(number, invalid(f"There is no field {other!r}."))
        return line_of_fields(number, {field: read[name] for name, field in fields.items() if name in read})


class _ParquetFile:
    """A table; its rows are counted from 1."""

    def __init__(self, file: IO[bytes], columns: FileColumns) -> None:
        require_format("parquet")
        from pyarrow import ArrowException, parquet  # noqa: PLC0415 - an extra

        try:
            self._table = parquet.ParquetFile(file)
        except ArrowException as unreadable:
            raise InvalidValue("/file", f"This is no Parquet file: {unreadable}") from unreadable
        places = columns.found_in(self._table.schema_arrow.names)
        self._fields = {self._table.schema_arrow.names[place]: field for field, place in places.items()}
        self.length, self.position = self._table.metadata.num_rows, 0

    def batches(self) -> Iterator[list[Line]]:
        for batch in self._table.iter_batches(LINES_AT_ONCE, columns=list(self._fields)):
            columns = {self._fields[name]: _column(batch, name) for name in batch.schema.names}
            rows = (dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True))
            yield [line_of_fields(self.position + number, row) for number, row in enumerate(rows, 1)]
            self.position += batch.num_rows


def _column(batch: Any, name: str) -> list[object]:  # noqa: ANN401 - pyarrow ships no types
    """The values of a column as the API would have them."""
    from pyarrow import timestamp, types  # noqa: PLC0415 - an extra

    column = batch.column(name)
    if types.is_timestamp(column.type) and column.type.unit == "ns":
        column = column.cast(timestamp("us", column.type.tz), safe=False)
    return [_plain(value) for value in column.to_pylist()]


def _plain(value: object) -> object:
    if isinstance(value, Decimal):
        return float(value)
    return time_text_of(value)
