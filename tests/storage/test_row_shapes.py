"""The shapes say what the tables are, column by column."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import BigInteger, Boolean, Column, Double, Integer, LargeBinary, MetaData, String, Table, Text

from service.storage import experiment_copies, removal
from service.storage.row_shapes import SHAPES
from service.storage.tables import experiments


@pytest.mark.parametrize("table", list(SHAPES))
def test_a_shape_has_the_columns_of_its_table(table: str) -> None:
    """All of them but the experiment's id, in their order; None exactly where the column takes it."""
    columns = experiment_copies.columns_of(table)
    assert list(SHAPES[table].__struct_fields__) == columns
    stored = experiments if table == "experiments" else next(one for one in removal.TABLES if one.name == table)
    optional = [name for name in columns if stored.columns[name].nullable]
    hints = SHAPES[table].__annotations__
    assert [name for name in columns if str(hints[name]).endswith("| None")] == optional


def test_every_table_of_an_experiment_is_described() -> None:
    """A new one is copied by its columns alone; whoever adds it says more here."""
    assert set(SHAPES) == set(experiment_copies.TABLES)


def test_a_table_that_nobody_described_has_the_shape_of_its_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Types and None by its columns."""
    columns: list[Column[Any]] = [
        Column("experiment_id", BigInteger, primary_key=True),
        Column("number", Integer, primary_key=True),
        Column("text", Text),
        Column("name", String(5), nullable=False),
        Column("share", Double, nullable=False),
        Column("on", Boolean, nullable=False),
        Column("body", LargeBinary),
    ]
    monkeypatch.setitem(experiment_copies._TABLES, "new", Table("new", MetaData(), *columns))  # noqa: SLF001 - as a new table would be
    shape = experiment_copies.shape_of("new")
    hints = {name: str(shape.__annotations__[name]) for name in shape.__struct_fields__}
    assert hints == {
        "number": "<class 'int'>",
        "text": "str | None",
        "name": "<class 'str'>",
        "share": "<class 'float'>",
        "on": "<class 'bool'>",
        "body": "bytes | None",
    }
