"""Texts that no spreadsheet takes for a formula, and back.

A text that begins as a formula does gets an apostrophe in front. So does one that begins with an apostrophe: whoever takes one
leading apostrophe away has every text back.
"""

from __future__ import annotations

_APOSTROPHE = "'"
# What spreadsheets begin a formula with, or skip before one; also as East Asian keyboards write them.
_SUSPECT = frozenset("=+-@\t\r\n＝＋－＠" + _APOSTROPHE)  # noqa: RUF001 - these very characters


def defused(text: str) -> str:
    """A text that no spreadsheet takes for a formula."""
    return _APOSTROPHE + text if text[:1] in _SUSPECT else text


def undefused(text: str) -> str:
    """The text as it was before."""
    return text[1:] if text[:1] == _APOSTROPHE and text[1:2] in _SUSPECT else text
