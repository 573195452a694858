"""A body's JSON: read as Python objects, refused where it holds what no field may hold, and told apart from others.

Whatever its shape, that costs a small multiple of its size, and others get their turn meanwhile. The longest that they wait for
it is a tenth of a second, for 16 MB of short texts: the parser makes those without a call of ours.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from itertools import groupby, islice
from typing import Any, NoReturn

from service.domain.limits import DEEPEST_JSON, LARGE_BODY_BYTES, MOST_JSON_CONTAINERS, MOST_JSON_NAMES
from service.web.problems import BadRequest

_NEITHER_QUOTES_NOR_BRACKETS = bytes(set(range(256)).difference(b'"{}[]'))
_NOT_OF_STRUCTURE = bytes(set(range(256)).difference(b'"{}[]:'))
_FLAT = 4
_SPLIT_AT_ONCE = 16 * 1024
# What is encoded by one call, which keeps the interpreter, and how much of it is hashed together.
_FEW, _ITEMS_AT_ONCE, _PARTS_AT_ONCE = 64, 256, 256
_CONTAINERS, _NUMBERS = frozenset({list, dict}), frozenset({int, float})
_MOST_BY_DIGITS = 10**22
_encode = json.JSONEncoder(check_circular=False, sort_keys=True, separators=(",", ":")).encode
_TOO_DEEP = f"The JSON is nested deeper than {DEEPEST_JSON} levels."


def _read_integer(digits: str) -> int:
    return int(digits)


def _read_object(names: dict[str, Any]) -> dict[str, Any]:
    if len(names) > MOST_JSON_NAMES:
        refuse((), f"An object in the body has more than {MOST_JSON_NAMES:,} names.")
    return names


# Python's own functions in the parser: between them the event loop's thread gets its turn, which C alone would keep for a second.
_INTERRUPTIBLE: dict[str, Any] = {"parse_int": _read_integer, "object_hook": _read_object}


def parse_json(body: bytes, content_type: str | None) -> Any:  # noqa: ANN401 - any JSON
    """The body as Python objects; refuses what is not JSON and what JSON should not hold."""
    media_type = (content_type or "").partition(";")[0].strip().lower()
    if media_type != "application/json" and not (media_type.startswith("application/") and media_type.endswith("+json")):
        raise BadRequest(415, "unsupported_media_type", "The body must be sent as application/json.")
    infinite = False

    def read_float(digits: str) -> float:
        nonlocal infinite
        number = float(digits)
        infinite = infinite or math.isinf(number)
        return number

    try:
        hooks = _INTERRUPTIBLE if len(body) > LARGE_BODY_BYTES else {}
        parsed = json.loads(body, parse_constant=_refuse_constant, parse_float=read_float, **hooks)
    except RecursionError as deep:
        raise BadRequest(400, "malformed_json", _TOO_DEEP) from deep
    except (json.JSONDecodeError, UnicodeDecodeError) as broken:
        raise BadRequest(400, "malformed_json", f"The body is not JSON: {broken}") from broken
    except ValueError as long:  # an integer with more digits than Python reads
        raise BadRequest(422, "validation_failed", "A number in the body has too many digits.") from long
    if infinite or not _surely_plain(body):
        refuse_unstorable(parsed)
    return parsed


def refuse_crowd(body: bytes) -> None:
    """Refuse what the parser would make in one call that yields to nobody: crowds of lists, objects and names; not in texts."""
    if body.count(b"[") + body.count(b"{") <= MOST_JSON_CONTAINERS and body.count(b":") <= MOST_JSON_NAMES:
        return
    in_utf_8 = body.decode(json.detect_encoding(body), "replace").encode()
    unescaped = in_utf_8.replace(b"\\\\", b"").replace(b'\\"', b"")
    outside = _outside_of_texts(unescaped.translate(None, _NOT_OF_STRUCTURE))
    if outside.count(b"[") + outside.count(b"{") > MOST_JSON_CONTAINERS:
        refuse((), f"The body has more than {MOST_JSON_CONTAINERS:,} lists and objects.")
    # Between colons without a brace between them no object begins or ends: they belong to one, and the parser calls nobody.
    if b":" * (MOST_JSON_NAMES + 1) in outside.translate(None, b"[]"):
        refuse((), f"An object in the body has more than {MOST_JSON_NAMES:,} names.")


def _surely_plain(body: bytes) -> bool:
    """True if no text in it can be what `refuse_unstorable` refuses: seen from the bytes, in a fraction of the time.

    Not so with a backslash, which may escape a character; with the first byte of a surrogate; and with a zero byte, which other
    encodings than UTF-8 are full of. What is left of its brackets outside of texts must close within a few levels.
    """
    if b"\\" in body or b"\xed" in body or b"\x00" in body:
        return False
    # Two quotes side by side enclose nothing, or lie between two texts: without them the same brackets are outside of texts.
    kept = body.translate(None, _NEITHER_QUOTES_NOR_BRACKETS).replace(b'""', b"")
    brackets = _outside_of_texts(kept)
    for _ in range(_FLAT):
        brackets = brackets.replace(b"{}", b"").replace(b"[]", b"")
    return not brackets


def _outside_of_texts(kept: bytes) -> bytes:
    """What does not stand between two quotes. Bit by bit: all that lies between them at once takes fifteen times its size."""
    outside, in_text = bytearray(), 0
    for start in range(0, len(kept), _SPLIT_AT_ONCE):
        parts = kept[start : start + _SPLIT_AT_ONCE].split(b'"')
        outside += b"".join(parts[in_text::2])
        in_text = (in_text + len(parts) - 1) % 2
    return bytes(outside)


def _refuse_constant(name: str) -> NoReturn:
    raise BadRequest(422, "validation_failed", f"Numbers must be finite, not {name}.", [{"pointer": "", "detail": name}])


def refuse_unstorable(parsed: object) -> None:
    """Refuse infinite numbers (1e400), U+0000 and unpaired surrogates anywhere, object names included, and deep nesting.

    It goes down and up again and holds nothing but the way to where it is: a pointer is put into words for the offender only.
    """
    way: list[str | int] = []
    levels: list[Iterator[tuple[str | int, Any]]] = [iter([(0, parsed)])]
    while levels:
        for step, value in levels[-1]:
            objection = objection_to_text(step) if type(step) is str else None
            if objection:
                refuse(way[1:], objection)
            kind = type(value)
            if kind is str or kind is float:
                objection = objection_to_text(value) if kind is str else _objection_to_number(value)
                if objection:
                    refuse([*way, step][1:], objection)
            elif value and (kind is list or kind is dict):
                way.append(step)
                levels.append(iter(value.items() if kind is dict else enumerate(value)))
                break
        else:
            levels.pop()
            del way[-1:]
        if len(levels) > DEEPEST_JSON + 1:
            raise BadRequest(400, "malformed_json", _TOO_DEEP)


def objection_to_text(text: str) -> str | None:
    """Why no field, name or parameter may hold this text."""
    if "\x00" in text:
        return "Text must not hold U+0000."
    if not text.isascii():
        try:
            text.encode()  # far quicker than looking at each character
        except UnicodeEncodeError:
            return "Text must not hold unpaired surrogates."
    return None


def _objection_to_number(number: float) -> str | None:
    return None if math.isfinite(number) else "Numbers must be finite."


def refuse(way: Sequence[str | int], detail: str) -> NoReturn:
    """As a problem, with a pointer to the offender."""
    pointer = "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in way)
    raise BadRequest(422, "validation_failed", detail, [{"pointer": pointer, "detail": detail}])


def fingerprint(parsed: object) -> str:
    """The same for equal JSON, whatever its spacing, the order of its names, and whether it says 1 or 1.0.

    It is kept with an idempotency key: a release must not write anything else than the one before it did, but for numbers of more
    than 22 digits, which had all of them once.
    """
    written, digest = _written(parsed), hashlib.sha256()
    while part := "".join(islice(written, _PARTS_AT_ONCE)):
        digest.update(part.encode())
    return digest.hexdigest()


def _written(parsed: object) -> Iterator[str]:
    """Its canonical text, part by part: at once it would keep the interpreter, and by recursion each level cost every part."""
    if not _is_large(parsed):
        yield _encode(_canonical(parsed))
        return
    levels = [_parts(parsed)]
    while levels:
        for part in levels[-1]:
            if not isinstance(part, str):
                levels.append(part)
                break
            yield part
        else:
            levels.pop()


def _parts(container: Any) -> Iterator[Any]:  # noqa: ANN401 - a list or an object
    """Its text; in the place of what is large, the parts of that."""
    is_list, comma = type(container) is list, ""
    names = range(len(container)) if is_list else sorted(container)
    yield "[" if is_list else "{"
    for start in range(0, len(names), _ITEMS_AT_ONCE):
        some = {name: container[name] for name in names[start : start + _ITEMS_AT_ONCE]}
        kinds = set(map(type, some.values()))
        if kinds.isdisjoint(_CONTAINERS):
            small = some if kinds.isdisjoint(_NUMBERS) else _canonical(some)
            yield comma + _encode([*small.values()] if is_list else small)[1:-1]
            comma = ","
            continue
        for is_large, run in groupby(some.items(), lambda item: _is_large(item[1])):
            if is_large:
                for name, value in run:
                    yield comma if is_list else f"{comma}{_encode(name)}:"
                    yield _parts(value)
                    comma = ","
            else:
                small = _canonical(dict(run))
                yield comma + _encode([*small.values()] if is_list else small)[1:-1]
                comma = ","
    yield "]" if is_list else "}"


def _is_large(value: Any) -> bool:  # noqa: ANN401 - any JSON
    """Does it hold much, or much within each other?"""
    return type(value) in _CONTAINERS and bool(value) and _weight(value, _FLAT) > _FEW


def _weight(container: Any, levels: int) -> int:  # noqa: ANN401 - a list or an object
    """How much it holds, counted as far as that is little."""
    inner = container if type(container) is list else container.values()
    weight = len(container) + 1
    if levels == 0:
        return _FEW + 1
    if not _CONTAINERS.isdisjoint(map(type, inner)):
        for one in inner:
            if weight > _FEW:
                break
            if type(one) in _CONTAINERS:
                weight += _weight(one, levels - 1)
    return weight


def _canonical(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """What is not large, with its numbers in one way: whole ones by their digits, as long as those are few."""
    kind = type(value)
    if kind is float:
        return int(value) if abs(value) < _MOST_BY_DIGITS and value.is_integer() else value
    if kind is int:
        return value if abs(value) < _MOST_BY_DIGITS else _shortest(value)
    if not value or kind not in _CONTAINERS:
        return value
    return [_canonical(one) for one in value] if kind is list else {name: _canonical(one) for name, one in value.items()}


def _shortest(whole: int) -> int | float:
    """As a float where that says the same: 1e300 has three hundred digits."""
    try:
        number = float(whole)
    except OverflowError:
        return whole
    return number if int(number) == whole else whole
