"""The file of one experiment: lines of JSON, whole or not at all.

    {"bestarm": "experiment", "format": 1, "release": …, "migration": …, "experiment": …, "version": …, "dumped_at": …}
    {"table": "experiments", "columns": ["key", "name", …]}
    ["checkout-button", "Checkout button", …]
    {"table": "arms", "columns": […]}
    …
    {"rows": {"experiments": 1, "arms": 3, …}, "sha256": …}

The last line counts the rows and has the SHA-256 of all bytes before it, so a file that was cut off or changed is known before
anything of it is stored. A name that ends in .gz is written compressed; whether a file is, is read from its first bytes.
"""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections import Counter
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import msgspec

from service.domain.limits import MOST_DUMP_LINE_BYTES
from service.errors import InvalidValue

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

FORMAT = 1
_KIND = "experiment"
_GZIP = b"\x1f\x8b"
_encode = msgspec.json.encode


class Header(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The first line."""

    release: str
    migration: str
    experiment: str
    version: int
    dumped_at: str
    format: int = FORMAT
    bestarm: str = _KIND


class _TableLine(msgspec.Struct, forbid_unknown_fields=True):
    table: str
    columns: list[str]


class _Trailer(msgspec.Struct, forbid_unknown_fields=True):
    rows: dict[str, int]
    sha256: str


class DumpWriter:
    """Writes the lines, and knows at the end what to say of them."""

    def __init__(self, file: IO[bytes], header: Header) -> None:
        self._file, self._digest = file, hashlib.sha256()
        self._rows: Counter[str] = Counter()
        self._write(_encode(header))

    def begin_table(self, table: str, columns: list[str]) -> None:
        """The rows that follow are of this table."""
        self._rows[table] = 0
        self._table = table
        self._write(_encode(_TableLine(table, columns)))

    def add_rows(self, rows: Sequence[Sequence[Any]]) -> None:
        """Some more rows of the table; bytes are written in base64."""
        self._rows[self._table] += len(rows)
        self._write(b"\n".join(_encode(list(row)) for row in rows))

    def finish(self) -> None:
        """The last line: without it the file is none."""
        self._file.write(_encode(_Trailer(dict(self._rows), self._digest.hexdigest())) + b"\n")

    def _write(self, lines: bytes) -> None:
        lines += b"\n"
        self._digest.update(lines)
        self._file.write(lines)


class DumpFile:
    """A file that was found to be whole."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.header = self._verified()

    @property
    def rows(self) -> int:
        """How many rows it has, of all tables."""
        return sum(self._counts.values())

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Every line after the first, numbered, but for the last one."""
        with _opened(self._path) as file:
            for number, line in enumerate(_read_lines(file), 1):
                if 1 < number < self._length:
                    yield number, line

    def _verified(self) -> Header:
        """Its header, if what follows is all that was written."""
        digest, last, length = hashlib.sha256(), b"", 0
        found: Counter[str] = Counter()
        table, header = "", None
        with _opened(self._path) as file:
            for line in _read_lines(file):
                if header is None:
                    header = header_of(line)
                digest.update(last)
                if last.startswith(b"["):
                    found[table] += 1
                elif length > 1:
                    table = table_of(last, length)[0]
                    found[table] += 0
                last, length = line, length + 1
        if header is None:
            raise InvalidValue("/file", f"{self._path} is empty.")
        trailer = _trailer_of(last)
        if trailer is None or not last.endswith(b"\n"):
            raise InvalidValue("/file", f"{self._path} ends in the middle: it was cut off.")
        if trailer.sha256 != digest.hexdigest() or trailer.rows != dict(found):
            raise InvalidValue("/file", f"{self._path} is not as it was written: its SHA-256 or its rows differ.")
        self._counts, self._length = found, length
        return header


def header_of(line: bytes) -> Header:
    """The first line, if it is that of an experiment."""
    try:
        header = msgspec.json.decode(line, type=Header)
    except (msgspec.DecodeError, RecursionError) as unreadable:
        raise InvalidValue("/file", "This is no file of `bestarm experiment dump`.") from unreadable
    if (header.bestarm, header.format) != (_KIND, FORMAT):
        raise InvalidValue("/file", f"This is a file of format {header.format}; this release reads format {FORMAT}.")
    return header


def table_of(line: bytes, number: int) -> tuple[str, list[str]]:
    """The name and the columns of the table that begins in this line."""
    try:
        begun = msgspec.json.decode(line, type=_TableLine)
    except (msgspec.DecodeError, RecursionError) as unreadable:
        raise InvalidValue("/file", f"Line {number} is neither a row nor the beginning of a table.") from unreadable
    return begun.table, begun.columns


def _trailer_of(line: bytes) -> _Trailer | None:
    try:
        return msgspec.json.decode(line, type=_Trailer)
    except (msgspec.DecodeError, RecursionError):
        return None


def _opened(path: Path) -> IO[bytes]:
    try:
        with path.open("rb") as file:
            compressed = file.read(len(_GZIP)) == _GZIP
        return cast("IO[bytes]", gzip.open(path, "rb")) if compressed else path.open("rb")
    except OSError as trouble:
        raise InvalidValue("/file", f"{path} cannot be read: {trouble.strerror}.") from trouble


def _read_lines(file: IO[bytes]) -> Iterator[bytes]:
    """Line by line, none longer than a line can be."""
    while True:
        try:
            line = file.readline(MOST_DUMP_LINE_BYTES + 1)
        except (EOFError, zlib.error, gzip.BadGzipFile) as damaged:
            raise InvalidValue("/file", "The compressed file ends in the middle, or is damaged.") from damaged
        if not line:
            return
        if len(line) > MOST_DUMP_LINE_BYTES:
            raise InvalidValue("/file", "A line of the file is longer than any that is written.")
        yield line
