"""Answers of a size that a model can read: long texts and values are cut, long lists go in pages, and both say so."""

from __future__ import annotations

import json
from typing import Any

ARMS_A_PAGE = 25
_LONGEST_TEXT = 1_000
_MOST_ENTRIES = 100


def bounded(answer: dict[str, Any], arms_from: int = 0) -> dict[str, Any]:
    """The answer with one page of its arms, and nothing in it that is long."""
    arms = answer.get("arms")
    if not isinstance(arms, list):
        return {name: _cut(name, value) for name, value in answer.items()}
    page = arms[arms_from : arms_from + ARMS_A_PAGE]
    shown = answer | {"arms": page}
    if len(page) < len(arms):
        shown["arms_note"] = _note(arms_from, len(page), len(arms))
    return {name: _cut(name, value) for name, value in shown.items()}


def _note(first: int, shown: int, of: int) -> str:
    ends = first + shown
    more = f" Call again with arms_from={ends} for more." if ends < of else ""
    return f"{shown} of {of:,} arms, from position {first} on.{more}"


def _cut(name: str, value: Any) -> Any:  # noqa: ANN401 - any JSON
    """A value of the caller's own is cut as a whole, everything else where it is long."""
    if name == "value":
        written = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        return value if len(written) <= _LONGEST_TEXT else _shortened(written)
    if isinstance(value, dict):
        return {inner: _cut(inner, one) for inner, one in value.items()}
    if isinstance(value, list):
        kept: list[Any] = [_cut("", one) for one in value[:_MOST_ENTRIES]]
        return kept if len(value) <= _MOST_ENTRIES else [*kept, f"… cut: {_MOST_ENTRIES} of {len(value):,} entries"]
    return _shortened(value) if isinstance(value, str) else value


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}… (cut: {_LONGEST_TEXT:,} of {len(text):,} characters)"
