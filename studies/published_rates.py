"""The rates that the paper prints, as its tables have them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_FILE = Path(__file__).parent / "data" / "published_rates.json"


def published_rates() -> dict[str, Any]:
    """The paper's tables by name: `minimax_rates` and `instance_9_by_budget`."""
    loaded: dict[str, Any] = json.loads(_FILE.read_text())
    return loaded
