"""From docs/README.md one finds every page, and in docs/glossary.md every word with its file."""

from __future__ import annotations

import re

import pytest

from tests.docs.texts import ROOT, text_of

_PAGES = sorted(
    path.relative_to(ROOT / "docs").as_posix() for folder in ("docs", "docs/decisions") for path in (ROOT / folder).glob("*.md")
)
_ENTRY = re.compile(r"- \*\*[^*]+\*\*: .+\. `service/[\w./]+`")
_ENTRIES = [line for line in text_of("docs/glossary.md").splitlines() if line.startswith("- ")]


def test_every_page_is_listed_once() -> None:
    """With one line each; the index itself need not be in it."""
    listed = re.findall(r"^(?:-|\d+\.) \[[^]]+\]\(([\w/.-]+\.md)\)", text_of("docs/README.md"), re.MULTILINE)
    assert sorted(page for page in listed if not page.startswith("../")) == [page for page in _PAGES if page != "README.md"]


@pytest.mark.parametrize(("page", "opening"), [("README.md", "## How it is built"), ("docs/architecture.md", "## The rooms")])
def test_every_room_is_shown(page: str, opening: str) -> None:
    """Each package of the service has its place in the pictures of the whole."""
    shown = text_of(page).partition(opening)[2].partition("\n## ")[0]
    rooms = {path.parent.name for path in (ROOT / "service").glob("*/**/__init__.py")}
    assert {room for room in rooms if not re.search(rf"\b{room}/", shown)} == set()


def test_every_module_beside_the_rooms_is_shown() -> None:
    """Those that stand in no room."""
    shown = text_of("docs/architecture.md").partition("## The rooms")[2].partition("\n## ")[0]
    modules = {path.name for path in (ROOT / "service").glob("*.py")} - {"__init__.py"}
    assert {module for module in modules if f"`{module}`" not in shown} == set()


def test_decisions_are_listed_by_number_and_title() -> None:
    """The line of a decision is its number and its title."""
    for page in _PAGES:
        if page.startswith("decisions/"):
            number, _, title = text_of(f"docs/{page}").partition("\n")[0].removeprefix("# ").partition(". ")
            assert f"\n{number}. [{title}]({page})\n" in text_of("docs/README.md")


def test_a_word_has_one_line_and_a_file() -> None:
    """A word, what it means, and where it lives (that this exists is checked with all other links)."""
    assert [entry for entry in _ENTRIES if not _ENTRY.fullmatch(entry)] == []


def test_words_are_in_order_and_said_once() -> None:
    """As in any dictionary."""
    words = [entry.split("**")[1] for entry in _ENTRIES]
    assert words == sorted(set(words))
    assert len(words) >= 50
