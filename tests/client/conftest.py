"""The client of each kind, driven alike: a test is written once."""

from __future__ import annotations

import asyncio
import inspect
import ssl
import subprocess
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import pytest

from bestarm import AsyncClient, Client
from testing.faulty_proxy import FaultyProxy
from testing.server import Server

Kind = Literal["blocking", "asynchronous"]
T = TypeVar("T")
NewClient = Callable[..., "Driven"]


class Driven:
    """A client whose every method is called and returns, whichever kind it is."""

    def __init__(self, kind: Kind, url: str, **settings: Any) -> None:  # noqa: ANN401 - those of the clients
        self._runner = asyncio.Runner()
        self.client = Client(url, **settings) if kind == "blocking" else AsyncClient(url, **settings)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - what the client has
        found = getattr(self.client, name)
        return self._called(found) if callable(found) else found

    def _called(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - of any method
            made = method(*args, **kwargs)
            if inspect.isasyncgen(made):
                return self._iterated(made)
            return self._runner.run(made) if inspect.iscoroutine(made) else made

        return call

    def _iterated(self, made: Any) -> Iterator[Any]:  # noqa: ANN401 - an asynchronous generator
        try:
            while True:
                yield self._runner.run(anext(made))
        finally:
            self._runner.run(made.aclose())

    def gathered(self, *doing: Coroutine[Any, Any, T]) -> list[T]:
        """Several things at once, in the event loop."""

        async def gathered() -> list[T]:
            return await asyncio.gather(*doing)

        return self._runner.run(gathered())

    def close(self) -> None:
        """Close it and the event loop."""
        self._called(self.client.close)(0.2)
        self._runner.close()


class Certificate(NamedTuple):
    """A certificate for localhost, and its own authority."""

    path: Path
    key: Path

    def server(self) -> ssl.SSLContext:
        """For who has it."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.path, self.key)
        return context

    def client(self) -> ssl.SSLContext:
        """For who trusts it."""
        return ssl.create_default_context(cafile=str(self.path))


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    """Made for this run by openssl."""
    folder = tmp_path_factory.mktemp("tls")
    made = Certificate(folder / "certificate.pem", folder / "key.pem")
    kind = ["-x509", "-nodes", "-days", "2", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    named = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    command: list[str | Path] = ["openssl", "req", *kind, *named, "-keyout", made.key, "-out", made.path]
    subprocess.run(command, check=True, capture_output=True)
    return made


@pytest.fixture(params=["blocking", "asynchronous"])
def kind(request: pytest.FixtureRequest) -> Kind:
    """Which client."""
    chosen: Kind = request.param
    return chosen


@pytest.fixture
def new_client(kind: Kind) -> Iterator[NewClient]:
    """Makes clients that are closed after the test."""
    made: list[Driven] = []

    def make(url: str, **settings: Any) -> Driven:  # noqa: ANN401 - those of the clients
        made.append(Driven(kind, url, **settings))
        return made[-1]

    yield make
    for driven in made:
        driven.close()


@pytest.fixture
def client(new_client: NewClient, server: Server) -> Driven:
    """A client of the shared service."""
    return new_client(server.url)


@pytest.fixture
def proxy(server: Server) -> Iterator[FaultyProxy]:
    """A network that can fail, before the shared service."""
    with FaultyProxy(server.port) as between:
        yield between


@pytest.fixture
def shaken(new_client: NewClient, proxy: FaultyProxy) -> Driven:
    """A client whose requests pass the network that can fail."""
    return new_client(proxy.url, timeout=10)
