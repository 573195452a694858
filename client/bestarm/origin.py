"""Where the service is, and how requests to it are written."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from typing import Self

import httpcore
import httpx

from bestarm.exchange import Answer, Call

# Less than what servers and proxies keep an idle connection for, so that few requests meet one that is just being closed.
IDLE_SECONDS = 4.0


@dataclass(frozen=True, slots=True)
class Origin:
    """The service's address, and what every request to it carries."""

    scheme: bytes
    host: bytes
    port: int | None
    prefix: str
    headers: tuple[tuple[bytes, bytes], ...] = field(repr=False)  # the key is no text for a log
    ssl_context: ssl.SSLContext | None
    max_connections: int

    @classmethod
    def at(cls, url: str, key: str | None, ssl_context: ssl.SSLContext | None, max_connections: int) -> Self:
        """The service at a URL; a wrong one is found here and not at the first page that needs it."""
        parsed = httpx.URL(url)
        if parsed.scheme not in {"http", "https"} or not parsed.host or parsed.query or parsed.fragment:
            raise ValueError(f"{url!r} is no address of a service, such as http://127.0.0.1:8000.")
        if parsed.userinfo:
            raise ValueError("A name and a password have no place in the address; a service knows keys.")
        headers = {b"host": parsed.netloc, b"accept": b"application/json", b"user-agent": b"bestarm-client"}
        if key is not None:
            if not key.isascii() or not key.isprintable() or not key.strip():
                raise ValueError("A key is printable ASCII.")
            headers[b"authorization"] = f"Bearer {key}".encode()
        context = ssl_context or (httpx.create_ssl_context() if parsed.scheme == "https" else None)
        prefix = parsed.raw_path.decode().rstrip("/")
        return cls(parsed.raw_scheme, parsed.raw_host, parsed.port, prefix, tuple(headers.items()), context, max_connections)

    @property
    def address(self) -> str:
        """The service's address in one spelling, whichever was given."""
        port = self.port or {b"http": 80, b"https": 443}[self.scheme]
        return f"{self.scheme.decode()}://{self.host.decode()}:{port}{self.prefix}"

    def url_of(self, call: Call) -> httpcore.URL:
        """The URL of a request."""
        return httpcore.URL(scheme=self.scheme, host=self.host, port=self.port, target=(self.prefix + call.path).encode())

    def headers_of(self, call: Call) -> list[tuple[bytes, bytes]]:
        """The headers of a request."""
        return [*self.headers, *((name.encode(), value.encode("latin-1")) for name, value in call.headers.items())]


def answer_of(response: httpcore.Response) -> Answer:
    """What came back, its content read already."""
    headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}
    return Answer(response.status, headers, response.content)
