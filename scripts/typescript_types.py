"""Writes typescript/bestarm.d.ts: the types of the HTTP API, generated from its OpenAPI document."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from service.main import create_app

ROOT = Path(__file__).parents[1]
TYPES = ROOT / "typescript" / "bestarm.d.ts"
NODE_PROGRAMS = ROOT / "tests" / "openfeature" / "node_modules" / ".bin"


def generated() -> str:
    """The types as the API is now."""
    with TemporaryDirectory() as folder:
        document, types = Path(folder) / "openapi.json", Path(folder) / "types.d.ts"
        document.write_text(json.dumps(create_app().openapi()))
        # A field of a request that has a default may be left out; in answers such fields are marked as required by themselves.
        options = ["--default-non-nullable=false", f"--output={types}"]
        subprocess.run([NODE_PROGRAMS / "openapi-typescript", document, *options], check=True, capture_output=True)  # noqa: S603 - pinned by its lock file
        return types.read_text()


if __name__ == "__main__":
    TYPES.write_text(generated())
