"""URLs of databases as users write them, several hosts of a PostgreSQL included, and as the drivers need them."""

from __future__ import annotations

import re

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from service.errors import InvalidValue

_DRIVERS = {
    "sqlite": "sqlite+aiosqlite",
    "postgresql": "postgresql+asyncpg",
    "postgres": "postgresql+asyncpg",
}
_PORT = "5432"
# scheme://user:password@one:5432,other:5432/database, as libpq writes it: SQLAlchemy cannot read several hosts in this place.
# A login is read first and as SQLAlchemy reads it, so that no part of a password is ever taken for a host.
_SEVERAL = re.compile(
    r"(?P<scheme>[\w+]+://)(?P<login>(?>(?:[^:/@]*(?::[^@]*)?@)?))(?P<hosts>[^@/?]*,[^@/?]*)(?P<rest>(?:[/?][^@]*)?)", re.DOTALL
)
_HOST = re.compile(r"(?:\[(?P<six>[^\]]+)\]|(?P<name>[^\[\]:]+|/.+?))(?::(?P<port>\d+))?")


def async_url(url: str) -> URL:
    """The URL as users write it, with the driver that the service brings."""
    try:
        parsed = _parsed(url)
    except ArgumentError as unreadable:
        raise InvalidValue("/database_url", "It is written sqlite:///file.db or postgresql://user:pw@host/db.") from unreadable
    scheme = parsed.drivername.partition("+")[0]
    if scheme not in _DRIVERS:
        raise InvalidValue("/database_url", f"The database must be sqlite or postgresql, not {scheme!r}.")
    return parsed.set(drivername=_DRIVERS[scheme])


def with_password(url: str, password: str) -> str:
    """The URL of a PostgreSQL with this password in it; any other URL as it is, because it needs none or says what is wrong."""
    try:
        parsed = _parsed(url)
    except ArgumentError:
        return url
    if parsed.get_backend_name() == "sqlite":
        return url
    return parsed.set(password=password).render_as_string(hide_password=False)


def display_url(url: str) -> str:
    """The URL without its password, for messages."""
    try:
        return _parsed(url).render_as_string(hide_password=True)
    except ArgumentError:
        return "a database whose URL cannot be read"


def _parsed(url: str) -> URL:
    """Several hosts are named in the query, all with their ports; the one that takes writes is meant, unless it is said."""
    several = _SEVERAL.fullmatch(url)
    parsed = make_url(url if several is None else several["scheme"] + several["login"] + several["rest"])
    hosts = _listed(parsed, "host") if several is None else several["hosts"].split(",")
    if parsed.get_backend_name() == "sqlite" or len(hosts) <= 1:
        return parsed
    pairs, ports = [_host_and_port(host) for host in hosts], _listed(parsed, "port")
    if len(ports) not in {0, 1, len(hosts)}:
        raise ArgumentError("As many ports as hosts, or one for all.")
    every_port = [port or (ports[place % len(ports)] if ports else _PORT) for place, (_, port) in enumerate(pairs)]
    named = parsed.update_query_dict({"host": ",".join(host for host, _ in pairs), "port": ",".join(every_port)})
    return named if "target_session_attrs" in named.query else named.update_query_dict({"target_session_attrs": "read-write"})


def _listed(url: URL, name: str) -> list[str]:
    found = url.query.get(name, ())
    return [part for one in ([found] if isinstance(found, str) else found) for part in one.split(",")]


def _host_and_port(text: str) -> tuple[str, str | None]:
    read = _HOST.fullmatch(text)
    if read is None:
        if ":" in text and text.count(":") > 1:  # an address of IPv6 by itself, as this module writes it
            return text, None
        raise ArgumentError(f"{text!r} is no host.")
    return read["six"] or read["name"], read["port"]
