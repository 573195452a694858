"""Secrets that a file holds instead of a variable, as container engines and clusters hand them over."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def secret_in(file: Path, variable: str) -> str:
    """What the file holds, but for the end of its last line, which editors and `echo` add.

    Raises ValueError with a sentence that names the variable, and nothing of the secret.
    """
    try:
        secret = file.read_text(encoding="utf-8").rstrip("\n")
    except OSError as unreadable:
        raise ValueError(f"{variable} cannot be read: {unreadable.strerror}.") from unreadable
    except UnicodeDecodeError:
        raise ValueError(f"{variable} is not a text in UTF-8.") from None
    if not secret:
        raise ValueError(f"{variable} is empty.")
    return secret
