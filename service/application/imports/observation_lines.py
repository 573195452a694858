"""One line of past data: an observation, or why it is none."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from typing import NamedTuple

import msgspec

from service.application.commands.tell import ObservationItem, TellResult
from service.domain.limits import LONGEST_LINE_BYTES
from service.engine.clock import microseconds_of

_AT = re.compile(r"(.*) - at `\$\.(\w+)`")
_NOT_UTF8 = "The line is not UTF-8, or holds U+0000."


class TimedObservation(ObservationItem, frozen=True, gc=False, forbid_unknown_fields=True):
    """An observation with the time at which it happened, which is checked and not kept."""

    time: str | None = None


class Line(NamedTuple):
    """A line by its number, counted from 1; what it says, or why that is unreadable; and when that was, if it says so."""

    number: int
    item: ObservationItem | TellResult
    at: int | None = None


_decode = msgspec.json.Decoder(TimedObservation).decode


def invalid(detail: str) -> TellResult:
    """What is wrong with a line."""
    return TellResult("invalid", detail)


def json_line(number: int, text: bytes) -> Line:
    """A line of JSON, in the words of the API."""
    if len(text) > LONGEST_LINE_BYTES:
        return Line(number, invalid(f"The line is longer than {LONGEST_LINE_BYTES // 1024} KiB."))
    try:
        return _checked(number, _decode(text))
    except (msgspec.DecodeError, UnicodeDecodeError) as unreadable:
        return Line(number, invalid(_sentence(unreadable)))


def line_of_fields(number: int, fields: Mapping[str, object]) -> Line:
    """A line whose fields are read already, by the names that the API has for them; an id may be a whole number here."""
    if type(fields.get("id")) is int:
        fields = {**fields, "id": str(fields["id"])}
    try:
        return _checked(number, msgspec.convert(fields, TimedObservation))
    except msgspec.ValidationError as unreadable:
        return Line(number, invalid(_sentence(unreadable)))


def _checked(number: int, read: TimedObservation) -> Line:
    """With texts that can be stored, and a time that is one."""
    if not (_is_plain(read.arm) and (read.id is None or _is_plain(read.id))):
        return Line(number, invalid(_NOT_UTF8))
    if read.time is None:
        return Line(number, read)
    try:
        return Line(number, read, microseconds_of(datetime.fromisoformat(read.time)))
    except ValueError:
        return Line(number, invalid("/time: A time is written in ISO 8601, as 2026-01-01T12:00:00Z."))


def _is_plain(text: str) -> bool:
    if "\x00" in text:
        return False
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False


def _sentence(trouble: Exception) -> str:
    """In words that name the field first."""
    found = _AT.fullmatch(str(trouble))
    return f"/{found[2]}: {found[1]}." if found else f"{trouble}."


def time_text_of(value: object) -> object:
    """A time as a typed file has it, as text; anything else as it is."""
    if isinstance(value, datetime):
        return value.isoformat()
    return datetime.combine(value, time()).isoformat() if isinstance(value, date) else value


def named(lines: Sequence[Line], source: str) -> list[Line]:
    """The same lines, each with an id: its own, or one that is made of the source and its number."""
    return [
        line
        if isinstance(line.item, TellResult) or line.item.id is not None
        else line._replace(item=ObservationItem(line.item.arm, line.item.reward, f"{source}:{line.number}"))
        for line in lines
    ]
