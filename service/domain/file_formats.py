"""The formats of files that data goes out and comes in as."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Literal, TypeAlias, get_args

from service.errors import ExtraMissing

FileFormat: TypeAlias = Literal["csv", "jsonl", "parquet"]
FILE_FORMATS: tuple[FileFormat, ...] = get_args(FileFormat)
FORMATS_BY_SUFFIX: dict[str, FileFormat] = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}


def require_format(wanted: FileFormat) -> None:
    """Raise if this format needs what is not installed."""
    if wanted == "parquet" and find_spec("pyarrow") is None:
        raise ExtraMissing("Parquet needs the extra `parquet`: pip install 'bestarm[parquet]'. CSV and JSON lines do without.")
