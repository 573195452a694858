"""Files of `bestarm experiment dump`, edited by somebody who knows how to make them look whole again."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

Change = Callable[[str, list[Any]], list[Any] | None]
"""What becomes of a row of a table; None if it goes."""


def edited(
    source: Path, target: Path, change: Change = lambda _, row: row, lines: Callable[[list[Any]], list[Any]] = lambda found: found
) -> Path:
    """The file with its rows changed one by one and then its lines as a whole, with a last line that fits."""
    found = [json.loads(line) for line in source.read_text().splitlines()[:-1]]
    table, kept = "", list[Any]()
    for line in found:
        if isinstance(line, dict):
            table = line.get("table", "")
            kept.append(line)
        elif (row := change(table, line)) is not None:
            kept.append(row)
    return sealed(target, lines(kept))


def sealed(target: Path, lines: list[Any]) -> Path:
    """These lines, and one that says of them what a dump says."""
    text = "".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines)
    table, counts = "", Counter[str]()
    for line in lines[1:]:
        if isinstance(line, dict):
            table = line["table"]
            counts[table] += 0
        else:
            counts[table] += 1
    trailer = {"rows": dict(counts), "sha256": hashlib.sha256(text.encode()).hexdigest()}
    target.write_text(text + json.dumps(trailer) + "\n")
    return target
