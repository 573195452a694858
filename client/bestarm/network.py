"""Sockets that keep a deadline, below httpx: connecting, writing and reading end when the whole call must end."""

from __future__ import annotations

import asyncio
import socket
import ssl
import weakref
from collections.abc import Iterable
from concurrent.futures import TimeoutError as ResolvingTimeout
from typing import Any

import httpcore

from bestarm.deadline import now_left
from bestarm.resolver import Resolver, is_address

_PIECE = 65_536
SocketOptions = Iterable[Any] | None


class DeadlineStream(httpcore.NetworkStream):
    """A connection whose every operation ends at the deadline that its time-out knows."""

    def __init__(self, stream: httpcore.NetworkStream, opened: weakref.WeakSet[socket.socket]) -> None:
        self._stream = stream
        self._opened = opened
        opened.add(stream.get_extra_info("socket"))

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Some bytes."""
        left = now_left(timeout)
        if left is not None and left <= 0:
            raise httpcore.ReadTimeout("The deadline is over.")
        return self._stream.read(max_bytes, left)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """All bytes, in pieces: a server that takes them slowly does not get more time for each."""
        for start in range(0, len(buffer), _PIECE):
            left = now_left(timeout)
            if left is not None and left <= 0:
                raise httpcore.WriteTimeout("The deadline is over.")
            self._stream.write(buffer[start : start + _PIECE], left)

    def close(self) -> None:
        """Close the socket."""
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        """The same connection, encrypted from here on."""
        return DeadlineStream(self._stream.start_tls(ssl_context, server_hostname, now_left(timeout)), self._opened)

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401 - httpcore's own
        """What httpcore asks about the socket."""
        return self._stream.get_extra_info(info)


class DeadlineBackend(httpcore.NetworkBackend):
    """Opens connections by a deadline: the name's resolution and all its addresses together."""

    def __init__(self) -> None:
        self._resolver = Resolver(may_wait=True)
        self._plain = httpcore.SyncBackend()
        self._opened: weakref.WeakSet[socket.socket] = weakref.WeakSet()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: SocketOptions = None,
    ) -> httpcore.NetworkStream:
        """A connection to the first address that takes it; each has its part of what is left."""
        addresses = self._addresses(host, port, timeout)
        for remaining in range(len(addresses), 0, -1):
            left = now_left(timeout)
            part = None if left is None else max(left / remaining, 0.001)
            try:
                stream = self._plain.connect_tcp(addresses[-remaining], port, part, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                if remaining == 1:
                    raise
            else:
                return DeadlineStream(stream, self._opened)
        raise httpcore.ConnectError(f"{host} has no address.")

    def _addresses(self, host: str, port: int, timeout: float | None) -> list[str]:
        if is_address(host):
            return [host]
        try:
            return self._resolver.addresses(host, port).result(now_left(timeout))
        except ResolvingTimeout as trouble:
            raise httpcore.ConnectTimeout(f"{host} does not resolve in time.") from trouble
        except OSError as trouble:
            raise httpcore.ConnectError(str(trouble)) from trouble

    def abandon(self) -> None:
        """Close this process's copies of all sockets, without a word to the other side: they are the parent's."""
        for opened in list(self._opened):
            opened.close()


class _BeforeTls(httpcore.AsyncNetworkStream):
    """A connection that is about to be encrypted. One that is given up meanwhile is closed, and not left to the collector."""

    def __init__(self, stream: httpcore.AsyncNetworkStream) -> None:
        self._stream = stream

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's own
    ) -> httpcore.AsyncNetworkStream:
        """The same connection, encrypted from here on."""
        try:
            return await self._stream.start_tls(ssl_context, server_hostname, now_left(timeout))
        except asyncio.CancelledError:
            await self._stream.aclose()
            raise


class ResolvingBackend(httpcore.AsyncNetworkBackend):
    """Opens connections for asyncio. The caller's `asyncio.timeout` is the deadline; names are resolved by a thread of ours.

    The event loop's own threads would be taken one after the other by a name server that is silent.
    """

    def __init__(self, *, is_encrypted: bool) -> None:
        self._is_encrypted = is_encrypted
        self._resolver = Resolver(may_wait=False)
        self._plain = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's own
        local_address: str | None = None,
        socket_options: SocketOptions = None,
    ) -> httpcore.AsyncNetworkStream:
        """A connection to the first address that takes it; each has its part of what is left."""
        addresses = await self._addresses(host, port)
        for remaining in range(len(addresses), 0, -1):
            left = now_left(timeout)
            part = None if left is None else max(left / remaining, 0.001)
            try:
                stream = await self._plain.connect_tcp(addresses[-remaining], port, part, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                if remaining == 1:
                    raise
            else:
                return _BeforeTls(stream) if self._is_encrypted else stream
        raise httpcore.ConnectError(f"{host} has no address.")

    async def _addresses(self, host: str, port: int) -> list[str]:
        if is_address(host):
            return [host]
        try:
            # Shielded: whoever gives up must not cancel what others wait for.
            return await asyncio.shield(asyncio.wrap_future(self._resolver.addresses(host, port)))
        except OSError as trouble:
            raise httpcore.ConnectError(str(trouble)) from trouble

    async def sleep(self, seconds: float) -> None:
        """Wait, as httpcore asks for."""
        await asyncio.sleep(seconds)
