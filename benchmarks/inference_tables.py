"""What the tables of docs/inference.md have in common: the studies' results, Markdown, shares with their intervals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from scipy.special import betaincinv

DOCS = Path(__file__).parent.parent / "docs"
RESULTS = DOCS / "inference"


def load(name: str) -> Any:  # noqa: ANN401 - JSON
    """The results of one study."""
    return json.loads((RESULTS / f"{name}.json").read_text())


def table(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table; all columns but the first to the right."""
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def share(count: int, runs: int) -> str:
    """A share of runs with its exact 95% interval."""
    low = betaincinv(count, runs - count + 1, 0.025) if count else 0.0
    high = betaincinv(count + 1, runs - count, 0.975)
    return f"{count / runs:.4f} ({low:.4f} to {high:.4f})"
