"""One attempt: to the address that was looked at and nowhere else, with TLS by name, within its time, reading little."""

from __future__ import annotations

import asyncio
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from service.application.webhooks.sender import Sender
from service.domain.network_addresses import AllowedNetworks
from service.storage.queries.delivery_queues import AttemptResult
from testing.receiver import Fault, Receiver


class _Names:
    """A name server's stand-in: what it answers, one answer after the other, and how often it was asked."""

    def __init__(self, *answers: list[str]) -> None:
        self._answers = list(answers)
        self.asked: list[str] = []

    async def __call__(self, host: str, _port: int) -> list[str]:
        self.asked.append(host)
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


def _send(url: str, networks: str = "127.0.0.0/8", names: _Names | None = None, *, seconds: float = 5.0) -> AttemptResult:
    """One attempt, to whatever these networks allow."""

    async def attempt() -> AttemptResult:
        sender = Sender(AllowedNetworks.named([one for one in networks.split(",") if one]), seconds, resolve=names)
        try:
            return await sender.send(url, {"webhook-id": "msg_1"}, b"{}")
        finally:
            await sender.close()

    return asyncio.run(attempt())


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """On 127.0.0.1."""
    with Receiver() as running:
        yield running


def test_a_message_reaches_its_endpoint(receiver: Receiver) -> None:
    """As a POST of JSON to its path, to the name that was given."""
    url = receiver.url.replace("127.0.0.1", "hooks.example.com")
    assert _send(url + "?a=b", names=_Names(["127.0.0.1"])) == AttemptResult(True, 200)
    (request,) = receiver.requests
    assert (request.path, request.headers["content-type"], request.body) == ("/hooks?a=b", "application/json", b"{}")
    assert request.headers["host"] == url.removeprefix("http://").removesuffix("/hooks")
    assert request.headers["user-agent"].startswith("bestarm/")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "2130706433", "127.1", "0x7f000001"])
def test_nothing_is_sent_to_loopback_by_any_name(receiver: Receiver, host: str) -> None:
    """A name that means it, and spellings of it that a resolver understands."""
    result = _send(receiver.url.replace("127.0.0.1", host), networks="")
    assert (result.delivered, result.response_status) == (False, None)
    assert "not a public address" in (result.error or "")
    assert receiver.requests == []


@pytest.mark.parametrize(
    "answer",
    [
        ["127.0.0.1"],
        ["10.0.0.1"],
        ["169.254.169.254"],
        ["::1"],
        ["::ffff:127.0.0.1"],
        ["64:ff9b::7f00:1"],
        ["2002:7f00:1::"],
        ["127.0.0.2", "127.0.0.1"],
        ["127.0.0.1", "127.0.0.2"],
        ["fe80::1%lo"],
        [],
    ],
    ids=str,
)
def test_a_name_that_means_what_may_not_be_called_is_refused(receiver: Receiver, answer: list[str]) -> None:
    """Wholly, also where one of its addresses would be allowed: it is not ours to choose."""
    result = _send(receiver.url.replace("127.0.0.1", "hooks.example.com"), "127.0.0.2", _Names(answer))
    assert (result.delivered, result.response_status) == (False, None)
    assert receiver.requests == []


def test_a_name_that_changes_its_meaning_gains_nothing(receiver: Receiver) -> None:
    """Asked once an attempt, and the connection goes to what was answered then: to 127.0.0.2, never to 127.0.0.1."""
    with _listening("127.0.0.2", receiver) as heard:
        names = _Names(["127.0.0.2"], ["127.0.0.1"])
        url = receiver.url.replace("127.0.0.1", "rebound.example.com")
        first = _send(url, "127.0.0.2", names)
        assert (first.delivered, names.asked) == (True, ["rebound.example.com"])
        assert heard == ["127.0.0.2"]
        second = _send(url, "127.0.0.2", names)
        assert second.error is not None
        assert "127.0.0.1 is not a public address" in second.error
        assert len(names.asked) == 2
    assert receiver.requests == []


class _listening:  # noqa: N801 - reads as the statement it is used as
    """Somebody at another address, and the same port, who takes what comes; the addresses that they were called at."""

    def __init__(self, host: str, beside: Receiver) -> None:
        self._heard: list[str] = []
        self._listener = socket.create_server((host, int(beside.url.rpartition(":")[2].removesuffix("/hooks"))))

    def __enter__(self) -> list[str]:
        threading.Thread(target=self._take, daemon=True).start()
        return self._heard

    def _take(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                with connection:
                    self._heard.append(connection.getsockname()[0])
                    connection.recv(65_536)
                    connection.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")

    def __exit__(self, *_: object) -> None:
        self._listener.close()


def test_a_redirect_to_loopback_is_a_failure(receiver: Receiver) -> None:
    """It is not followed, to wherever it leads."""
    with Receiver() as inside:
        receiver.redirect_to = inside.url
        receiver.faults.extend(["redirect"])
        assert _send(receiver.url) == AttemptResult(False, 301, "The endpoint answered 301. A redirect is not followed.")
        assert inside.requests == []


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ("error", AttemptResult(False, 500, "The endpoint answered 500.")),
        ("gone", AttemptResult(False, 410, "The endpoint answered 410.")),
        ("hang", AttemptResult(False, None, "There was no answer within 0.5 seconds.")),
        ("close", AttemptResult(False, None, "The connection ended before the answer was whole, or what came was not HTTP.")),
        ("half", AttemptResult(True, 200)),
        ("endless", AttemptResult(True, 200)),
    ],
)
def test_what_becomes_of_an_attempt(receiver: Receiver, fault: Fault, expected: AttemptResult) -> None:
    """The status decides, whatever follows it; without one it is a failure, with its reason."""
    receiver.faults.extend([fault])
    assert _send(receiver.url, seconds=0.5) == expected


def test_nobody_there(receiver: Receiver) -> None:
    """A refused connection is a failure with a reason, and without the path of the endpoint."""
    receiver.down()
    result = _send(receiver.url + "/secret-path")
    assert (result.delivered, result.response_status) == (False, None)
    assert "no connection" in (result.error or "")
    assert "secret-path" not in (result.error or "")


def test_the_next_address_is_tried_where_nobody_answers(receiver: Receiver) -> None:
    """As long as nobody has heard of the message."""
    url = receiver.url.replace("127.0.0.1", "hooks.example.com")
    assert _send(url, names=_Names(["127.0.0.3", "127.0.0.1"])).delivered
    assert len(receiver.requests) == 1


def test_no_proxy_of_the_environment_is_used(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would connect for us, past all that was checked."""
    with Receiver() as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url.removesuffix("/hooks"))
        assert _send(receiver.url).delivered
        assert proxy.requests == []


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of hooks.example.com, and its key, in one file."""
    openssl = shutil.which("openssl")
    assert openssl is not None
    folder = tmp_path_factory.mktemp("certificate")
    key, signed = folder / "key.pem", folder / "certificate.pem"
    names = "subjectAltName=DNS:hooks.example.com"
    command = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=hooks", "-addext", names]
    subprocess.run([*command, "-keyout", key, "-out", signed], check=True, capture_output=True)
    both = folder / "both.pem"
    both.write_text(key.read_text() + signed.read_text())
    return both


@pytest.mark.process
@pytest.mark.parametrize(
    ("host", "trusted", "delivered"),
    [("hooks.example.com", True, True), ("other.example.com", True, False), ("hooks.example.com", False, False)],
    ids=["by its name", "by another name", "signed by nobody we know"],
)
def test_tls_is_with_the_name_and_not_with_the_address(certificate: Path, host: str, *, trusted: bool, delivered: bool) -> None:
    """The connection goes to an address, the certificate must be the name's, and be signed by somebody that is trusted."""
    own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    own.load_cert_chain(certificate)
    named: list[str | None] = []
    own.sni_callback = lambda _socket, name, _context: named.append(name)
    listener = socket.create_server(("127.0.0.1", 0))

    def answer() -> None:
        with suppress(OSError):
            connection, _ = listener.accept()
            with own.wrap_socket(connection, server_side=True) as wrapped:
                read = b""
                while not read.endswith(b"\r\n\r\n{}"):  # closed before all was read, it would reset the connection
                    read += wrapped.recv(65_536)
                wrapped.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    known = ssl.create_default_context(cafile=str(certificate) if trusted else None)

    async def attempt() -> AttemptResult:
        networks = AllowedNetworks.named(["127.0.0.1"])
        sender = Sender(networks, 5.0, resolve=_Names(["127.0.0.1"]), ssl_context=known)
        return await sender.send(f"https://{host}:{listener.getsockname()[1]}/", {}, b"{}")

    result = asyncio.run(attempt())
    thread.join(10)
    listener.close()
    assert result.delivered == delivered
    assert named == [host]
    assert delivered or "CERTIFICATE_VERIFY_FAILED" in (result.error or "")
