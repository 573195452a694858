"""What comments and docstrings of the code refer to is there, and a docstring is a sentence about its thing."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.docs.texts import ROOT, tracked

_SUFFIXES = {".py", ".mk", ".toml", ".sql", ".js", ".css", ".html", ".yml", ".lua"}
# tests/test_layout.py follows the paths of this table, which begin below tests/.
_TABLE = "tested_by.py"
_CODE = [
    path for path in tracked() if (path.suffix in _SUFFIXES or path.name in {"Makefile", "Dockerfile"}) and path.name != _TABLE
]
_FOLDERS = "service|studies|testing|migrations|tests|scripts|docs|benchmarks|requirements|make"
_PATH = re.compile(rf"(?<![\w/.])((?:{_FOLDERS})/[\w./-]*\w)")
_PAGE = re.compile(r"(?<![\w/\"'.-])([\w-]+\.md)\b")
# Made while packaging (pyproject.toml).
_MADE_LATER = (
    "tests/openfeature/node_modules",
    "service/migrations",
)
# Code that others read first. What a docstring there says must stand by itself.
_READ_FIRST = ("service/", "testing/", "scripts/")
# Remarks to a reader who has just read something else.
_REMARKS = {
    "a few of them.", "a part of one.", "as it is.", "as json.", "asked to stop.", "by one of both.", "four letters.",
    "is it good?", "it ends now.", "it has read.", "it landed, or not.", "leave nothing behind.", "no batch yet.",
    "nothing has happened.", "of the means.", "one more.", "one round.", "say when it serves.", "so far.", "some of them.",
    "something has happened.", "something of the body is there.", "stop looking.", "the caller has it.",
    "the other way round.", "there is none.", "these rows.", "to three digits.", "what it becomes.",
}  # fmt: skip
# Of their kind, in whatever words: a verb with nothing but a pronoun, and what sends its reader to the docstring before.
_REMARK = re.compile(r"(\w+ ){1,2}(it|them|all|this|that)\.|(the )?same\b(\S* \S+){0,3}")
# Words for what has a name of its own in docs/glossary.md.
_BANNED = ("glance to glance", "glances", "lifecycle step", "step of an experiment's life")


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


def _docstrings() -> Iterator[tuple[str, str]]:
    """Each module that is read first, with its docstrings, those of attributes included."""
    for path in _CODE:
        name = path.relative_to(ROOT).as_posix()
        if path.suffix == ".py" and name.startswith(_READ_FIRST):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
                    yield f"{name}:{node.lineno}", node.value.value


def test_a_docstring_is_a_sentence_and_no_remark() -> None:
    """One word says less than the name that it stands under; "likewise" makes its reader look for what it is like."""
    remarks = []
    for where, text in _docstrings():
        said = " ".join(text.lower().split())
        is_like = said.startswith("likewise") or said.endswith("likewise.")
        if said in _REMARKS or _REMARK.fullmatch(said) or is_like or len(said.split()) == 1:
            remarks.append((where, text))
    assert remarks == []


def test_a_word_means_one_thing() -> None:
    """What was called by another thing's word has its own now, and keeps it."""
    assert [(where, word) for where, text in _docstrings() for word in _BANNED if word in " ".join(text.lower().split())] == []
