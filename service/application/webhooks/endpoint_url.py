"""The address of an endpoint: read by one parser wherever it matters, and resolved to addresses that may all be called."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeAlias

import httpx

from service.errors import InvalidValue

if TYPE_CHECKING:
    from service.domain.network_addresses import AllowedNetworks

Resolver: TypeAlias = Callable[[str, int], Awaitable[list[str]]]
"""The addresses of a name, which the caller then connects to."""
_POINTER = "/url"
_LARGEST_PORT = 65_535


class AddressRefused(Exception):  # noqa: N818 - what became of an attempt, not a failure of ours
    """A name leads to an address that may not be called, or to none."""


def read_url(text: str, networks: AllowedNetworks) -> httpx.URL:
    """The address, checked as far as it can be without asking anybody what a name means."""
    try:
        url = httpx.URL(text)
        port = url.port
    except (httpx.InvalidURL, ValueError) as unreadable:
        raise InvalidValue(_POINTER, "An endpoint is written https://hooks.example.com/bestarm.") from unreadable
    if url.scheme not in ("http", "https") or not url.host:
        raise InvalidValue(_POINTER, "An endpoint begins with https:// or http:// and names a host.")
    if url.userinfo or url.fragment:
        raise InvalidValue(_POINTER, "An endpoint has no user and no #fragment in it: what it needs to know is signed.")
    if port is not None and not 1 <= port <= _LARGEST_PORT:
        raise InvalidValue(_POINTER, "A port is a number from 1 to 65535.")
    refused = [address for address in _spelled_addresses(url.host) if not networks.allow(address)]
    if refused:
        raise InvalidValue(_POINTER, refusal_of(refused[0]))
    return url


def refusal_of(address: str) -> str:
    """Why an address is not called."""
    return f"{address} is not a public address: BESTARM_WEBHOOK_ALLOWED_NETWORKS says which others may be called."


def _spelled_addresses(host: str) -> list[str]:
    """The address that a host spells out, as 127.0.0.1, 2130706433, 0x7f.1 or ::1; nothing for a name, and nobody is asked."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except (OSError, UnicodeError):
        return []
    return [str(address[0]) for *_, address in found]


class SystemResolver:
    """Asks the system, in a few threads of its own: a slow name server holds up nothing else."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(4, thread_name_prefix="webhook names")

    async def __call__(self, host: str, port: int) -> list[str]:
        """All addresses of a name, in the system's order."""
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(self._threads, lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        return list(dict.fromkeys(str(address[0]) for *_, address in found))

    def close(self) -> None:
        """Ask no more; answers that are on their way are nobody's."""
        self._threads.shutdown(wait=False, cancel_futures=True)


async def callable_addresses(url: httpx.URL, networks: AllowedNetworks, resolve: Resolver) -> list[str]:
    """What the host means now. All of it must be allowed: who answers for a name decides which address is taken."""
    try:
        found = await resolve(url.host, url.port or (443 if url.scheme == "https" else 80))
    except (OSError, UnicodeError) as unknown:
        raise AddressRefused("The name of the endpoint is not known.") from unknown
    for address in found:
        if not networks.allow(address):
            raise AddressRefused(refusal_of(address))
    if not found:
        raise AddressRefused("The name of the endpoint is not known.")
    return found
