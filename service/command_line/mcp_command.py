"""The command `mcp` of the `bestarm` program. The SDK is imported when it runs, so that no other command needs the extra."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer

from service.command_line.console import refuse

_OF_THE_EXTRA = {"mcp", "mcp_types"}


def _key(file: Path | None) -> str | None:
    """From the file or the environment; never an argument, which every process of the machine could read."""
    try:
        given = os.environ.get("BESTARM_KEY", "") if file is None else file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as trouble:
        refuse("Cannot read the key", f"{file}: {getattr(trouble, 'strerror', None) or 'not a text'}.", code=2)
    key = given.strip()
    if not (key.isascii() and key.isprintable()) or " " in key:
        refuse("Cannot use the key", "a key is one word of letters, digits and signs.", code=2)
    return key or None


def _checked(url: str) -> str:
    try:
        parts = urlsplit(url)
        fits = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0 and parts.username is None
    except ValueError:
        fits = False
    if not fits or parts.query or parts.fragment:
        refuse("Cannot use the URL", "--url is as http://127.0.0.1:8000, without a user, a query or a fragment.", code=2)
    return url


def serve_tools(
    *,
    url: Annotated[str, typer.Option(help="Where the service is.")] = "http://127.0.0.1:8000",
    key_file: Annotated[Path | None, typer.Option(help="A file with the key to use, instead of BESTARM_KEY.")] = None,
    allow_changes: Annotated[
        bool, typer.Option("--allow-changes", help="Also offer the tools that create, start, pause and conclude.")
    ] = False,
) -> None:
    """Offer the experiments as tools to the host of a language model (MCP), on standard input and output."""
    where, key = _checked(url), _key(key_file)
    try:
        from service.mcp_server.assembly import serve  # noqa: PLC0415 - of the extra `mcp`
    except ModuleNotFoundError as missing:
        if (missing.name or "").split(".")[0] not in _OF_THE_EXTRA:
            raise
        refuse("Cannot start", "this command needs an extra: pip install 'bestarm[mcp]'", code=2)
    asyncio.run(serve(where, key, allow_changes=allow_changes))


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command("mcp")(serve_tools)
