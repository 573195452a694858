"""The rows of a dump, read and checked one after the other, some at a time."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from service.application.commands.experiments import check_arms, check_expiry, check_rule, check_worthwhile
from service.application.copies.dump_file import table_of
from service.application.copies.row_relations import RowRelations
from service.errors import InvalidValue
from service.storage import experiment_copies
from service.storage.row_shapes import ExperimentShape, Shape

if TYPE_CHECKING:
    from service.application.commands.experiments import Described
    from service.application.copies.dump_file import DumpFile

_BYTES_AT_ONCE = 1024 * 1024
_NUL = b"\\u0000"
# What reading a row that was not written by us may come to.
_UNREADABLE = (
    msgspec.MsgspecError,
    zlib.error,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    RecursionError,
    OverflowError,
)


class DumpRows:
    """Goes through a file once. What is known of the experiment by then is in `relations`."""

    def __init__(self, file: DumpFile, check_settings: Callable[[Described], None]) -> None:
        self._file, self._check_settings = file, check_settings
        self._tables = iter(experiment_copies.TABLES)
        self._table: str | None = None
        self._decoder: msgspec.json.Decoder[Shape] = msgspec.json.Decoder(Shape)
        self._relations: RowRelations | None = None
        self.rows_at_once = 1
        self._held: list[Shape] = []
        self._bytes = 0

    @property
    def relations(self) -> RowRelations:
        """The experiment's own row is the first of all."""
        if self._relations is None:
            raise InvalidValue("/file", "The experiment itself is missing.")
        return self._relations

    def chunks(self) -> Iterator[tuple[str, list[Any]]]:
        """Rows of one table each, all found to be good; the first chunk is the experiment's own row."""
        for number, line in self._file.lines():
            with _named(number):
                if line.startswith(b"["):
                    self._add(line)
                else:
                    yield from self._taken()
                    self._begin(*table_of(line, number))
            if len(self._held) >= self.rows_at_once or self._bytes >= _BYTES_AT_ONCE:
                yield from self._taken()
        yield from self._taken()
        if next(self._tables, None) is not None:
            raise InvalidValue("/file", "A table is missing.")
        self.relations.finish()

    def _taken(self) -> Iterator[tuple[str, list[Any]]]:
        if self._table is not None and self._held:
            yield self._table, self._held
        self._held, self._bytes = [], 0

    def _begin(self, name: str, columns: list[str]) -> None:
        """The next table: each has its place, and the columns that ours has."""
        if self._table == "arms":
            self.relations.arms_are_complete()
            self._require_possible()
        table = self._table = next(self._tables, None)
        if table is None or table != name:
            raise InvalidValue("/file", f"The table {name!r} is not expected here.")
        if columns != experiment_copies.columns_of(table):
            raise InvalidValue("/file", f"The table {name!r} has other columns than here.")
        self._decoder = msgspec.json.Decoder(experiment_copies.shape_of(table))

    def _add(self, line: bytes) -> None:
        row = self._decoder.decode(line)
        if _NUL in line and any(isinstance(value, str) and "\x00" in value for value in _values(row)):
            raise InvalidValue("/file", "A text holds the character U+0000, which no database of ours can.")
        if isinstance(row, ExperimentShape):
            if self._relations is not None:
                raise InvalidValue("/file", "There is one experiment in a file.")
            self._relations = RowRelations(row)
        else:
            self.relations.check(row)
        self._held.append(row)
        self._bytes += len(line)

    def _require_possible(self) -> None:
        """Settings such as could have been set here."""
        described = self.relations.progress, self.relations.arms
        experiment = described[0].experiment
        self._check_settings(described)
        check_expiry(experiment)
        check_worthwhile(experiment)
        check_rule(experiment)
        check_arms([record.arm for record in described[1]])


def _values(row: Shape) -> list[Any]:
    return [getattr(row, name) for name in row.__struct_fields__]


@contextmanager
def _named(number: int) -> Iterator[None]:
    """What is wrong, with the line that it stands in."""
    try:
        yield
    except InvalidValue as refused:
        raise InvalidValue("/file", f"Line {number}: {refused}") from refused
    except _UNREADABLE as unreadable:
        raise InvalidValue("/file", f"Line {number} cannot be read: {unreadable}") from unreadable
