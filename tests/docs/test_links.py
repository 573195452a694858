"""Links lead somewhere, files that are named exist, and no file says where packages were downloaded from."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.texts import ROOT, documents, tracked, without_blocks

_LINK = re.compile(r"\]\(([^)\s]+)\)")
_FOLDERS = r"service|studies|migrations|tests|testing|scripts|docs|benchmarks|requirements|make|client|\.ci"
_NAMED = re.compile(rf"`((?:{_FOLDERS})/[\w./*-]*)`")
# Put together here, so that this file is not found by its own search.
_REGISTRIES = re.compile(
    "|".join(("py" + r"pi\.org", "python" + "hosted", "registry" + r"\.npmjs", "index" + r"-url\s*=\s*\S", r"/sim" + "ple/"))
)
_PAGES = [path.relative_to(ROOT).as_posix() for path in documents()]


def _anchors(page: Path) -> set[str]:
    """As GitHub makes them of headings."""
    headings = re.findall(r"^#+ (.+)$", without_blocks(page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", _PAGES)
def test_relative_links_resolve(page: str) -> None:
    """To a file of the project, and to a heading in it."""
    for link in _LINK.findall(without_blocks((ROOT / page).read_text())):
        if "://" in link or link.startswith("mailto:"):
            continue
        name, _, anchor = link.partition("#")
        target = (ROOT / page).parent / name if name else ROOT / page
        assert target.exists(), f"{page} links to {link}"
        if anchor:
            assert anchor in _anchors(target), f"{page} links to {link}"


@pytest.mark.parametrize("page", _PAGES)
def test_files_that_a_page_names_exist(page: str) -> None:
    """Code moves; its documentation has to move along."""
    for name in _NAMED.findall((ROOT / page).read_text()):
        assert list(ROOT.glob(name.rstrip("/"))), f"{page} names {name}"


def test_no_file_names_a_registry() -> None:
    """Packages are pinned by hash; where they are fetched from is the installer's business."""
    readable = [path for path in tracked() if path.suffix not in {".png", ".svg", ".jpg", ".ico", ".woff2", ".parquet", ".npz"}]
    assert [str(path.relative_to(ROOT)) for path in readable if _REGISTRIES.search(path.read_text(errors="replace"))] == []


def test_lock_files_hold_no_address() -> None:
    """Names, versions and hashes only."""
    for path in sorted((ROOT / "requirements").glob("*.txt")):
        assert "://" not in path.read_text(), path.name
