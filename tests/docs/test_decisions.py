"""Decisions have one form, are numbered without gaps, and end in code that exists."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

from tests.docs.texts import ROOT

_PAGES = sorted((ROOT / "docs/decisions").glob("*.md"))
_LEAD_INS = ["Decided.", "Why.", "What it costs.", "Rules that follow.", "Enforced by"]
_MIDDLEWARE = ROOT / "service/web/middleware"
_QUOTED = re.compile(r"`([^`]+)`")

every_decision = pytest.mark.parametrize("page", _PAGES, ids=lambda page: page.stem)


def _entries(page: Path) -> list[str]:
    """The list below "Enforced by", one text an entry."""
    listed = page.read_text(encoding="utf-8").partition("**Enforced by**\n")[2]
    return [" ".join(entry.split()) for entry in re.split(r"^- ", listed, flags=re.MULTILINE) if entry.strip()]


def _is_path(quoted: str) -> bool:
    return "/" in quoted or quoted.endswith((".py", ".toml"))


@cache
def _defined_in(path: Path) -> frozenset[str]:
    """The names that a Python file defines: classes, functions, variables and attributes."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.add(node.id if isinstance(node, ast.Name) else node.attr)
    return frozenset(names)


def _has(path: Path, name: str) -> bool:
    """Whether a file defines a name, or, where it is not Python, has its words in it."""
    if path.suffix == ".py":
        return set(name.split(".")) <= _defined_in(path)
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", path.read_text(encoding="utf-8")) is not None


def test_decisions_are_numbered_without_gaps() -> None:
    """1, 2, 3, …, in the file's name and in its title."""
    titles = [page.read_text(encoding="utf-8").partition("\n")[0] for page in _PAGES]
    assert [page.name[:5] for page in _PAGES] == [f"{number:04}-" for number in range(1, len(_PAGES) + 1)]
    assert [title.split(" ")[:2] for title in titles] == [["#", f"{number}."] for number in range(1, len(_PAGES) + 1)]


@every_decision
def test_a_decision_has_the_one_form(page: Path) -> None:
    """A title and bold lead-ins: these five in this order, others between them, and no further heading."""
    text = page.read_text(encoding="utf-8")
    lead_ins = re.findall(r"^\*\*(.+?)\*\*", text, re.MULTILINE)
    assert [lead_in for lead_in in lead_ins if lead_in in _LEAD_INS] == _LEAD_INS
    assert len(re.findall(r"^#", text, re.MULTILINE)) == 1
    assert lead_ins[0] == _LEAD_INS[0]
    assert lead_ins[-1] == _LEAD_INS[-1]


@every_decision
def test_what_enforces_a_decision_exists(page: Path) -> None:
    """Every entry names a file, and every name quoted after it is defined there."""
    entries = _entries(page)
    assert entries
    missing = []
    for entry in entries:
        path: Path | None = None
        for quoted in _QUOTED.findall(entry):
            if quoted.startswith("make "):
                continue  # a command: test_reference.py knows them
            if _is_path(quoted):
                path = ROOT / quoted
                missing += [] if path.is_file() else [quoted]
            elif path is None:
                missing.append(f"{quoted} stands before any path")
            elif path.is_file() and not _has(path, quoted):
                missing.append(f"{quoted} in {path.relative_to(ROOT)}")
        missing += [] if path is not None else [f"no path in: {entry}"]
    assert missing == [], "; ".join(missing)


def _first_column(number: int) -> list[str]:
    """What the first column of a decision's table quotes, from top to bottom."""
    [page] = [page for page in _PAGES if page.name.startswith(f"{number:04}-")]
    cells = re.findall(r"^\| (`[^|]+) \|", page.read_text(encoding="utf-8"), re.MULTILINE)
    return [name for cell in cells for name in _QUOTED.findall(cell)]


def test_every_middleware_has_its_row() -> None:
    """Decision 6 says of each what it is on the fast path, which passes it by."""
    modules = sorted(path.stem for path in _MIDDLEWARE.glob("*.py") if path.stem != "__init__")
    assert sorted(_first_column(6)) == modules


def test_the_rooms_are_those_of_the_contract() -> None:
    """Decision 10 lists the layers that the imports are held to, from top to bottom."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    assert _first_column(10) == [name for layer in contracts[0]["layers"] for name in layer.split(" | ")]


def test_the_costs_of_a_decision_are_those_that_were_measured() -> None:
    """The table of decision 5 has the medians of its file."""
    measured = json.loads((ROOT / "benchmarks/results/decision_cost.json").read_text(encoding="utf-8"))["arms"]
    page = (ROOT / "docs/decisions/0005-fast-weights.md").read_text(encoding="utf-8")
    for arms, cells in measured.items():
        medians = [one["median_us"] for one in cells.values()]
        told = [f"{cost:,.0f} µs" if cost < 1_000 else f"{cost / 1_000:,.1f} ms" for cost in medians]
        assert f"| {int(arms):,} | {' | '.join(told)} |" in page
