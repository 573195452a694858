"""To whom a service is open where there are no keys, and how it says so."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from service.main import callers_of
from service.settings import Settings
from service.storage.database import Database

_EVERYWHERE = "0.0.0.0"  # noqa: S104 - nobody listens
_NAME = "bestarm.example.com"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, ("info", None)),
        ({"allowed_hosts": "localhost"}, ("info", None)),
        ({"allowed_hosts": _NAME}, ("warning", [_NAME])),
        ({"public_url": f"https://{_NAME}"}, ("warning", [_NAME])),
        ({"host": _EVERYWHERE, "insecure": True}, ("warning", None)),
        ({"host": _EVERYWHERE}, None),
        ({"admin_key": "a key of the administrator"}, None),
    ],
    ids=["loopback", "its own name", "a name", "a page", "insecure", "beyond loopback", "with a key"],
)
def test_an_open_service_says_so(sqlite_template: Path, given: dict[str, Any], said: tuple[str, list[str] | None] | None) -> None:
    """As a warning where others than this machine's users reach it; behind a proxy, whose name leads to it, they do."""
    settings = Settings(database_url=f"sqlite:///{sqlite_template}", **given)

    async def run() -> bool:
        database = Database(settings.database_url)
        callers = callers_of(database, settings)
        await callers.start()
        await database.close()
        return callers.is_open

    with capture_logs() as logged:
        assert asyncio.run(run()) is (said is not None)
    assert [(line["log_level"], line.get("known_as")) for line in logged] == ([] if said is None else [said])
