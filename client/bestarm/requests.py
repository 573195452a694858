"""The requests that are made of what callers say."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from urllib.parse import quote

from bestarm.assignment import Json
from bestarm.errors import Invalid
from bestarm.exchange import Call


def post(path: str, body: Json, *, key: str | None = None) -> Call:
    """A request that creates or changes something, with a key: sent twice it takes effect once."""
    headers = {"content-type": "application/json", "idempotency-key": key or new_key()}
    return Call("POST", path, _encoded(body), headers)


def tell(path: str, body: Json, *, method: str = "POST") -> Call:
    """A request that is repeatable by nature and needs no key: a reward, a correction, a patch."""
    return Call(method, path, _encoded(body), {"content-type": "application/json"})


def get(path: str, parameters: Mapping[str, Json] | None = None, **headers: str) -> Call:
    """A request that changes nothing."""
    given = {name: value for name, value in (parameters or {}).items() if value is not None}
    query = "&".join(f"{quote(name, safe='')}={quote(str(value), safe='')}" for name, value in given.items())
    return Call("GET", f"{path}?{query}" if query else path, None, {name.replace("_", "-"): it for name, it in headers.items()})


def new_key() -> str:
    """A name for one request that no other has."""
    return os.urandom(16).hex()


def path_of(experiment: str, *parts: str) -> str:
    """The path of an experiment, or of something below it."""
    return "/v1/experiments/" + "/".join(_quoted(part) for part in (experiment, *parts))


def _quoted(part: str) -> str:
    """One part of a path. Nobody's name leads elsewhere: a slash would, written in whichever way, and so would dots alone."""
    if "/" in part or not part.strip(".") or not part.isprintable():  # half a character, which has no bytes, is not printable
        raise Invalid(422, {"code": "validation_failed", "detail": f"{part!r} is not the name of anything."})
    return quote(part, safe="")


def _encoded(body: Json) -> bytes | None:
    return None if body is None else json.dumps(body, allow_nan=False, separators=(",", ":")).encode()
