"""A whole export, from the snapshot to the bytes of its file: the same over HTTP and from the command line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from service.application.reads.export import ExportOrder, opened_export
from service.domain.file_formats import FileFormat, require_format
from service.web.exports.csv_text import CsvText
from service.web.exports.export_schema import COLUMNS
from service.web.exports.exported_values import values_of
from service.web.exports.json_lines import JsonLines

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from service.storage.row_streams.row_source import RowSource
    from service.web.exports.export_schema import Column

MEDIA_TYPES: dict[FileFormat, str] = {
    "csv": CsvText.media_type,
    "jsonl": JsonLines.media_type,
    "parquet": "application/vnd.apache.parquet",
}


class _File(Protocol):
    """A format that writes row by row; each call gives the bytes that are ready."""

    def begin(self) -> bytes: ...

    def add(self, rows: Sequence[tuple[Any, ...]]) -> bytes: ...

    def finish(self) -> bytes: ...


class FileOrder(msgspec.Struct, frozen=True):
    """An export, and the format of its file."""

    order: ExportOrder
    format: FileFormat

    @property
    def file_name(self) -> str:
        """What the file is called: keys are made of harmless characters."""
        part = f"-after-{self.order.after}" if self.order.after else ""
        return f"{self.order.key}-{self.order.of}{part}.{self.format}"


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes of the file, in order; and how far it has come with them."""

    content: bytes
    version: int
    """Of the experiment, in the snapshot: no row has a higher number."""
    rows: int = 0
    """How many rows the file has with these bytes."""
    last: int = 0
    """The sequence number of the last of them."""
    waited: float = 0.0
    """Seconds for which the database was waited for until then."""


async def file_pieces(source: RowSource, wanted: FileOrder) -> AsyncIterator[Piece]:
    """The file, piece by piece; a first piece without a row says that the snapshot is there."""
    file = _new_file(wanted.format, COLUMNS[wanted.order.of])
    async with opened_export(source, wanted.order) as export:
        version, count, last = export.progress.version, 0, wanted.order.after
        yield Piece(file.begin(), version, waited=export.as_of.waited)
        async for rows in values_of(export):
            count += len(rows)
            last = rows[-1][0] if rows else last
            yield Piece(file.add(rows), version, count, last, export.as_of.waited)
        waited = export.as_of.waited
    yield Piece(file.finish(), version, count, last, waited)


def _new_file(wanted: FileFormat, columns: Sequence[Column]) -> _File:
    if wanted == "csv":
        return CsvText(columns)
    if wanted == "jsonl":
        return JsonLines(columns)
    require_format(wanted)
    from service.web.exports.parquet_groups import ParquetGroups  # noqa: PLC0415 - an extra

    return ParquetGroups(columns)
