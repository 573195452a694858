"""What the dashboard's scripts take from the domain's own tables, as a module that they import: there is no second copy."""

from __future__ import annotations

import json

from service.domain import AUDITED, TRAITS
from service.domain.limits import KEY_PATTERN

_EXPORTS = {
    "AUTHORS": {kind: TRAITS[kind].author for kind in AUDITED},
    "KEY_PATTERN": KEY_PATTERN,
}
VOCABULARY = "".join(f"export const {name} = {json.dumps(value)};\n" for name, value in _EXPORTS.items())
