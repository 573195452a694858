"""URLs as users write them, and what becomes of them."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy.ext.asyncio import create_async_engine

from service.errors import InvalidValue
from service.storage.database_url import async_url, display_url, with_password
from service.storage.postgres_hosts import connection_arguments


def _arguments(url: str) -> dict[str, Any]:
    """How the driver is told to connect to the hosts of a URL."""
    engine = create_async_engine(async_url(url))
    return connection_arguments(engine)


_SEVERAL = {"target_session_attrs": "read-write", "host": ["one", "other"], "port": [5432, 5433]}


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:pw@one,other:5433/db",
        "postgresql://me:pw@one:5432,other:5433/db",
        "postgresql://me:pw@/db?host=one:5432&host=other:5433",
        "postgres://me:pw@/db?host=one,other&port=5432,5433",
        "postgresql://me:pw@one,other:5433/db?target_session_attrs=read-write",
    ],
)
def test_several_hosts(url: str) -> None:
    """However they are written, the one that takes writes is meant; with its password it is the same URL."""
    assert _arguments(url) == {
        "timeout": 10,
        "user": "me",
        "password": "pw",
        "database": "db",
        "target_session_attrs": "read-write",
        **_SEVERAL,
    }
    assert async_url(with_password(url, "pw")) == async_url(url)


def test_addresses_and_sockets() -> None:
    """Addresses of IPv6 have colons of their own, sockets are folders."""
    assert _arguments("postgresql://me@[::1],[::2]:5433/db")["host"] == ["::1", "::2"]
    assert _arguments("postgresql://me@/db?host=/one&host=/other")["port"] == [5432, 5432]
    assert _arguments("postgresql://me@/db?host=/one,/other&port=1")["port"] == [1, 1]


def test_what_is_meant_may_be_said() -> None:
    """Another kind of server than the one that takes writes, or one host alone, which is taken as it is."""
    chosen = async_url("postgresql://me@one,other/db?target_session_attrs=primary")
    assert chosen.query["target_session_attrs"] == "primary"
    assert not async_url("postgresql://me@one/db").query


@pytest.mark.parametrize(
    "url", ["postgresql://one:,other/db", "postgresql://one,other/db?port=1,2,3", "oracle://one/db", "nonsense"]
)
def test_what_cannot_be_read_is_refused(url: str) -> None:
    """With a sentence that says how it is written."""
    with pytest.raises(InvalidValue):
        async_url(url)


def test_no_password_is_shown() -> None:
    """With one host or several."""
    for hosts in ("one", "one:5432,other:5433"):
        shown = display_url(f"postgresql://me:secret@{hosts}/db")
        assert "secret" not in shown
        assert "other" in shown or hosts == "one"


@pytest.mark.parametrize(
    "url",
    ["postgresql://me:1234,secret@one/db", "postgresql://me:se:cret,x/y@one/db", "postgresql://me:secret,a?b@one:5432/db"],
)
def test_no_part_of_a_password_is_a_host(url: str) -> None:
    """Commas, colons and slashes in it are its own; a message shows none of it."""
    assert async_url(url).host == "one"
    shown = display_url(url)
    assert "secret" not in shown
    assert "cret" not in shown
    assert "1234" not in shown
