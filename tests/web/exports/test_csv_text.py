"""CSV: texts that no spreadsheet takes for a formula, and back."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.spreadsheet_text import defused, undefused
from service.web.exports.csv_text import CsvText
from service.web.exports.export_schema import Column

_COLUMNS = [Column("sequence", "integer", ""), Column("unit", "text", "", nullable=True, foreign=True)]


@given(st.text(min_size=1))
def test_every_text_comes_back(text: str) -> None:
    """Whatever it is, by one rule."""
    assert undefused(defused(text)) == text


@pytest.mark.parametrize("first", ["=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠"])  # noqa: RUF001 - these very ones
def test_no_text_begins_as_a_formula(first: str) -> None:
    """With an apostrophe before it, it is text."""
    assert defused(f"{first}HYPERLINK(1)") == f"'{first}HYPERLINK(1)"
    assert defused(f"a{first}") == f"a{first}"


@given(st.lists(st.tuples(st.integers(0, 9), st.none() | st.text(st.characters(exclude_categories=["Cs"]), min_size=1))))
def test_any_csv_reader_finds_the_fields(rows: list[tuple[int, str | None]]) -> None:
    """Commas, quotes and line breaks in a text are the text's own; nothing is an empty field."""
    file = CsvText(_COLUMNS)
    content = (file.begin() + file.add(rows) + file.finish()).decode()
    read = list(csv.reader(io.StringIO(content, newline="")))
    assert read[0] == ["sequence", "unit"]
    assert [(int(number), undefused(unit) if unit else None) for number, unit in read[1:]] == rows
