"""What comments and docstrings of the code refer to is there."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.docs.texts import ROOT, tracked

_SUFFIXES = {".py", ".mk", ".toml", ".sql", ".js", ".css", ".html", ".yml", ".lua"}
_CODE = [path for path in tracked() if path.suffix in _SUFFIXES or path.name in {"Makefile", "Dockerfile"}]
_FOLDERS = "service|studies|testing|migrations|tests|scripts|docs|benchmarks|requirements|make"
_PATH = re.compile(rf"(?<![\w/.])((?:{_FOLDERS})/[\w./-]*\w)")
_PAGE = re.compile(r"(?<![\w/\"'.-])([\w-]+\.md)\b")
# Made while packaging (pyproject.toml).
_MADE_LATER = ("service/migrations",)


def _named(pattern: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """Each file with what it names."""
    for path in _CODE:
        for name in pattern.findall(path.read_text(encoding="utf-8")):
            yield path.relative_to(ROOT).as_posix(), name


def test_files_that_code_names_exist() -> None:
    """Modules move; what speaks of them has to move along. The beginning of a name will do: decisions are cited by number."""
    assert [
        (path, name) for path, name in _named(_PATH) if not name.startswith(_MADE_LATER) and not list(ROOT.glob(f"{name}*"))
    ] == []


def test_pages_that_code_names_are_ours() -> None:
    """No comment sends its reader to a page outside the repository."""
    ours = {page.name for page in ROOT.glob("*.md")} | {page.name for page in ROOT.glob("docs/**/*.md")}
    assert [(path, name) for path, name in _named(_PAGE) if name not in ours] == []
