"""Where stored data is not what the history makes it: what was compared, field by field, and the first that differs."""

from __future__ import annotations

from typing import Any

import msgspec

_LINE = 80


class Difference(Exception):  # noqa: N818 - the outcome of a replay, not a failure of it
    """The first place where the stored data is not what the history makes it."""


def plain(thing: object) -> dict[str, Any]:
    """As nested dictionaries, to be compared field by field."""
    return {} if thing is None else msgspec.to_builtins(thing)


def compare(what: str, stored: dict[str, Any], again: dict[str, Any], path: str = "") -> None:
    """Raise Difference with the first field that is not the same."""
    for name in again.keys() | stored.keys():
        old, new = stored.get(name), again.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            compare(what, old, new, f"{path}{name}.")
        elif old != new:
            raise Difference(f"{what}: {path}{name} is stored as {_short(old)}, the history makes it {_short(new)}.")


def _short(value: object) -> str:
    text = str(value) if not isinstance(value, str) else repr(value)
    return text if len(text) <= _LINE else f"{text[: _LINE - 3]}..."
