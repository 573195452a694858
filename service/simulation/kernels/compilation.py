"""How the kernels are compiled: which liberties with floats are allowed, and where the machine code is kept.

Allowed are reassociation, contraction, unsigned zeros and reciprocals: full speed, while infinities, NaNs and accurate
functions keep their meaning (a fully relaxed mode broke ties differently). Machine code is cached between processes.
Numba notices a change of the file that it compiles but not of a file that is imported from there, so the folder's name
carries a digest of all. Making a new one removes those of versions that were used longest ago.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeVar, cast

import numba

P = ParamSpec("P")
R = TypeVar("R")

_FLOAT_LIBERTIES = {"reassoc", "contract", "nsz", "arcp"}


# Folders of other versions that stay: another checkout may be at work with its own.
_OTHERS_KEPT = 3


def _cache_folder() -> str:
    """A folder of the user's cache that belongs to exactly this version of the sources."""
    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = root / "bestarm" / f"kernels-{digest.hexdigest()[:16]}"
    with suppress(OSError):  # where nothing can be written numba finds another place
        open_folder(folder)
    return str(folder)


def open_folder(folder: Path) -> None:
    """Make the folder if it is new, and then remove the oldest of its siblings; a process that uses one compiles again."""
    if folder.exists():
        return
    folder.mkdir(parents=True)
    others = [other for other in folder.parent.glob("kernels-*") if other != folder]
    for old in sorted(others, key=lambda other: other.stat().st_mtime)[:-_OTHERS_KEPT]:
        shutil.rmtree(old, ignore_errors=True)


_CACHE_FOLDER = _cache_folder()


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """The function as machine code, compiled at its first call."""
    return _compile(function, inline="never")


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """The same, written out where it is called: for the few lines that every draw passes through.

    A call costs little, but counting the references to the arrays that it takes costs more than those lines.
    """
    return _compile(function, inline="always")


def _compile(function: Callable[P, R], *, inline: Literal["never", "always"]) -> Callable[P, R]:
    settings: Any = numba.config  # its names are made at run time
    before = settings.CACHE_DIR
    settings.CACHE_DIR = _CACHE_FOLDER
    try:
        made = numba.njit(cache=True, error_model="numpy", fastmath=_FLOAT_LIBERTIES, inline=inline)(function)
    finally:
        settings.CACHE_DIR = before
    return cast("Callable[P, R]", made)
