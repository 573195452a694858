"""Pages are read in terminals and in diffs, too: no line is longer than 160 characters."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.docs.texts import ROOT, documents, text_of

_LONGEST = 160
# Lines that may be longer, by page and by how they begin.
_EXCEPTED = {
    "README.md": re.compile(r' "summary": '),  # a JSON string cannot be broken, and this one is the service's own sentence
    "docs/reproduction.md": re.compile(r"\| "),  # rows of tables that `make reproduction-page` writes: one row, one line
}
# Between these marks a benchmark writes its tables (docs/inference.md, docs/live-traffic.md).
_BEGIN, _END = re.compile(r"<!-- (?!/|end )[\w ]+ -->"), re.compile(r"<!-- (?:/[\w ]+|end) -->")


def _written_by_hand(page: str) -> Iterator[tuple[int, str]]:
    by_tool = False
    for number, line in enumerate(text_of(page).splitlines(), 1):
        if _BEGIN.fullmatch(line):
            by_tool = True
        if _END.fullmatch(line):
            by_tool = False
        if not by_tool:
            yield number, line


@pytest.mark.parametrize("page", [path.relative_to(ROOT).as_posix() for path in documents()])
def test_no_line_is_too_long(page: str) -> None:
    """But for what tools write and what cannot be broken."""
    excepted = _EXCEPTED.get(page)
    long = [(number, line) for number, line in _written_by_hand(page) if len(line) > _LONGEST]
    assert [(number, len(line)) for number, line in long if excepted is None or not excepted.match(line)] == []
