"""Exports as Parquet: typed columns, in row groups of a bounded size. Needs pyarrow, which is an extra.

JSON is its text. The end of a file says where its parts are: one that breaks off cannot be read, nor gone on with by its bytes.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import parquet

from service.web.exports.exported_values import json_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.web.exports.export_schema import Column

# Rows come by the thousand or fewer, and a group ends with those that fill it. It is in memory until it is written, and a page of
# each column while it is made: some megabytes. Larger pages took 10 MB more, larger groups 3, and files no smaller (measured).
_ROWS_OF_GROUP = 8_192
_PAGE_BYTES = 64 * 1024
# Arrow's own keeps what was freed for the next time, 14 MB of it (measured).
pa.set_memory_pool(pa.system_memory_pool())
_TYPES = {
    "integer": pa.int64(),
    "number": pa.float64(),
    "boolean": pa.bool_(),
    "text": pa.string(),
    "time": pa.timestamp("us", tz="UTC"),
    "json": pa.string(),
}


def schema_of(columns: Sequence[Column]) -> pa.Schema:
    """The columns as Arrow has them, each with its meaning."""
    return pa.schema(
        [pa.field(one.name, _TYPES[one.type], nullable=one.nullable, metadata={"description": one.meaning}) for one in columns]
    )


class ParquetGroups:
    """A file that is written row group by row group."""

    media_type = "application/vnd.apache.parquet"

    def __init__(self, columns: Sequence[Column]) -> None:
        self._schema = schema_of(columns)
        self._json = [place for place, column in enumerate(columns) if column.type == "json"]
        self._written = io.BytesIO()
        self._writer = parquet.ParquetWriter(
            pa.PythonFile(self._written, "w"),
            self._schema,
            compression="zstd",
            use_dictionary=[column.name for column in columns if column.few],
            data_page_size=_PAGE_BYTES,
        )
        self._batches: list[pa.RecordBatch] = []
        self._rows = 0

    def begin(self) -> bytes:
        """The mark that a Parquet file begins with."""
        return self._taken()

    def add(self, rows: Sequence[tuple[Any, ...]]) -> bytes:
        """These rows; what becomes of them may come with later ones."""
        if rows:
            columns = [list(column) for column in zip(*rows, strict=True)]
            for place in self._json:
                columns[place] = [None if value is None else json_text(value) for value in columns[place]]
            arrays = [pa.array(values, field.type) for values, field in zip(columns, self._schema, strict=True)]
            self._batches.append(pa.RecordBatch.from_arrays(arrays, schema=self._schema))
            self._rows += len(rows)
        if self._rows >= _ROWS_OF_GROUP:
            self._write_group()
        return self._taken()

    def finish(self) -> bytes:
        """The last row group, and where they all are."""
        self._write_group()
        self._writer.close()
        return self._taken()

    def _write_group(self) -> None:
        if self._batches:
            self._writer.write_table(pa.Table.from_batches(self._batches, self._schema), row_group_size=self._rows)
        self._batches, self._rows = [], 0

    def _taken(self) -> bytes:
        """What has been written since."""
        taken = self._written.getvalue()
        self._written.seek(0)
        self._written.truncate()
        return taken
