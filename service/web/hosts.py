"""Which names a service answers to.

A page of another site can let its own name lead to this address (DNS rebinding), and is then of one origin with the service by
the browser's account. But the name is still in `Host`.
"""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_HOST = re.compile(rb"([A-Za-z0-9._-]{1,255}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{0,5})?")
# Few names lead to a service; whoever makes up others must not fill the memory with them.
_MOST_REMEMBERED = 64


def is_loopback(name: str) -> bool:
    """Does this name lead to the machine itself, whoever asks?"""
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name.removeprefix("[").removesuffix("]")).is_loopback
    except ValueError:
        return False


def is_address(host: bytes) -> bool:
    """Is it an address and no name? No page of another site can let one lead here."""
    name = name_in(host)
    try:
        ipaddress.ip_address((name or "").removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


def name_in(host: bytes) -> str | None:
    """The name in a value of `Host`, without its port, as names are compared; None if it is no name at all."""
    read = _HOST.fullmatch(host)
    return None if read is None else read[1].decode().lower().removesuffix(".")


def _covers(allowed: str, name: str) -> bool:
    """`*.example.com` stands for every name below example.com."""
    return name.endswith(allowed[1:]) if allowed.startswith("*.") else name == allowed


class AllowedHosts:
    """The names by which a service that listens on this address may be asked."""

    def __init__(self, listening: str, names: Sequence[str], *, insecure: bool = False) -> None:
        """Where keys guard it, any name will do until some are named: a cookie is bound to the name that it was given under."""
        self._names = tuple(name.lower() for name in names)
        self._takes_addresses = not names and not is_loopback(listening)
        self._takes_any = self._takes_addresses and not insecure
        self.accepted: set[bytes] = set()
        """Values of `Host` that were accepted lately: one lookup for whoever sends the same again."""

    def accepts(self, host: bytes) -> bool | None:
        """Is it one of the names? None if it is no name at all."""
        if host in self.accepted:
            return True
        name = name_in(host)
        if name is None:
            return None
        by_itself = self._takes_any or is_loopback(name) or (self._takes_addresses and is_address(host))
        if not (by_itself or any(_covers(allowed, name) for allowed in self._names)):
            return False
        if len(self.accepted) >= _MOST_REMEMBERED:
            self.accepted.clear()
        self.accepted.add(host)
        return True
