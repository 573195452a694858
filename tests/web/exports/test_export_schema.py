"""The data dictionary, in the code and in the docs."""

from __future__ import annotations

import re

import pytest

from service.application.reads.export import EXPORTED, Exported
from service.web.exports.export_schema import COLUMNS
from tests.docs.texts import text_of

_ROW = re.compile(r"^\| `(\w+)` \| (\w+)(, or nothing)? \| (.+) \|$", re.MULTILINE)


@pytest.mark.parametrize("of", EXPORTED)
def test_the_dictionary_is_documented(of: Exported) -> None:
    """docs/data.md has every column in its order, with its type, whether it may be empty, and its meaning; and no other."""
    _, dictionary = text_of("docs/data.md").split("## The data dictionary")
    section = dictionary.split(f"### {of.capitalize()}\n")[1].split("\n### ")[0]
    documented = [(name, kind, bool(empty), meaning) for name, kind, empty, meaning in _ROW.findall(section)]
    assert documented == [(column.name, column.type, column.nullable, column.meaning) for column in COLUMNS[of]]


def test_a_row_is_found_again_by_its_number() -> None:
    """Every export begins with `sequence`, which `after=` is about."""
    assert {columns[0].name for columns in COLUMNS.values()} == {"sequence"}


def test_texts_of_callers_are_marked() -> None:
    """What only the service writes needs no defusing; of the rest every text does."""
    ours = {"id", "arm", "reason", "status", "kind", "status_before", "status_after"}
    texts = {(of, column.name, column.foreign) for of, columns in COLUMNS.items() for column in columns if column.type == "text"}
    assert {(of, name) for of, name, foreign in texts if foreign} == {
        ("assignments", "unit"),
        ("observations", "id"),
        ("events", "actor"),
    }
    assert {name for _, name, foreign in texts if not foreign} == ours
