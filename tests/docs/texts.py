"""The documents as text, and what is in them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def _listed_by_git() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],  # noqa: S607 - git, wherever it is
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return [path for name in listed.stdout.split("\0") if name and (path := ROOT / name).is_file()]


# Asked while the tests are collected, so that no test starts a process for it.
_TRACKED = _listed_by_git()


def tracked() -> list[Path]:
    """Every file of the project that still exists, new ones included, what git ignores left out."""
    return _TRACKED


def documents() -> list[Path]:
    """All pages."""
    return [path for path in tracked() if path.suffix == ".md"]


def text_of(name: str) -> str:
    """One page."""
    return (ROOT / name).read_text(encoding="utf-8")


def all_text() -> str:
    """All pages together."""
    return "\n".join(path.read_text(encoding="utf-8") for path in documents())


def blocks_of(text: str) -> list[tuple[str, str]]:
    """The fenced blocks of a page in order: (language, content)."""
    return [(found[1], found[2]) for found in _BLOCK.finditer(text)]


def without_blocks(text: str) -> str:
    """The page without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
