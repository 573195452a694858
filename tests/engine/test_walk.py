"""The walk of an ask, as docs/architecture.md tells it, is the one that an ask takes."""

from __future__ import annotations

import asyncio
import re
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import uvicorn
from pydantic import SecretStr

from service.engine.queue import Command, Recipient
from service.main import create_app
from service.settings import Settings
from service.web.fast_path.protocol import FastPathProtocol
from testing.databases import NewDatabase
from testing.server import ADMIN_KEY

_ROOT = Path(__file__).parents[2]
_MOST_STOPS = 16
_MOST_CARRIED = 12
_PAGE = _ROOT / "docs/architecture.md"
_ENGINES = {"service/storage/groups/postgres.py", "service/storage/groups/sqlite.py"}
# Not ours.
_THE_LOOPS_OWN = {"call_soon"}
_ASK = (
    b"POST /v1/experiments/walk/assignments HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "
    + ADMIN_KEY.encode()
    + b"\r\nContent-Length: 0\r\n\r\n"
)
_NEW = (
    b'{"key": "walk", "arms": [{"key": "a"}, {"key": "b"}, {"key": "c"}]}',
    b"POST /v1/experiments HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "
    + ADMIN_KEY.encode()
    + b"\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b",
)


def _section() -> str:
    text = _PAGE.read_text()
    begin = text.index("## The walk of an ask")
    return text[begin : text.index("\n## ", begin + 3)]


def _stops() -> dict[str, str]:
    """The files of the numbered walk, each with what the page says there; the other engine's module stands beside its twin."""
    text = _section()
    steps = re.split(r"\n(?=\d+\. )", text[: text.index("**Carried along")])[1:]
    found: dict[str, str] = {}
    for step in steps:
        for link in re.findall(r"\]\(\.\./(service/[\w/]+\.py)\)", step):
            found[link] = step
    return found


def _carried() -> set[str]:
    """The files that the page names beside the walk, one by one."""
    text = _section()
    return set(re.findall(r"`(service/[\w/]+\.py)`", text[text.index("**Carried along") : text.index("**A tell differs**")]))


class _Tracer:
    """Notes the files of the service whose functions run in the event loop's thread."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.calls_up: set[tuple[str, str]] = set()
        """From a function of the engine into the web or the application: the layer, and what was called."""
        self.on = False

    def profile(self, frame: FrameType, event: str, _argument: Any) -> None:  # noqa: ANN401 - the interpreter's
        """To be set as the thread's profile function."""
        if self.on and event == "call":
            path = _file_of(frame)
            if path.startswith("service/"):
                self.files.add(path)
            if path.startswith(("service/web/", "service/application/")) and _file_of(frame.f_back).startswith("service/engine/"):
                self.calls_up.add((path.split("/")[1], frame.f_code.co_name))


def _file_of(frame: FrameType | None) -> str:
    """Its path in the repository; empty if it has none there."""
    path = Path(frame.f_code.co_filename) if frame else _ROOT.parent
    return str(path.relative_to(_ROOT)) if path.is_relative_to(_ROOT) else ""


@contextmanager
def _serving(url: str, tracer: _Tracer) -> Iterator[int]:
    """The application on a connection of uvicorn's in a thread of its own, traced."""
    listening = socket.create_server(("127.0.0.1", 0))
    app = create_app(Settings(database_url=url, admin_key=SecretStr(ADMIN_KEY)))
    config = uvicorn.Config(app, http=FastPathProtocol, log_level="warning", proxy_headers=False, lifespan="on")
    server = uvicorn.Server(config)
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined,unused-ignore] # signals are for main threads

    def run() -> None:
        sys.setprofile(tracer.profile)
        asyncio.run(server.serve([listening]))

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield listening.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(30)
        listening.close()


def _answer(client: socket.socket, request: bytes) -> bytes:
    client.sendall(request)
    answer = b""
    while b"\r\n\r\n" not in answer or not answer.endswith(b"}"):
        received = client.recv(65536)
        assert received, answer
        answer += received
    return answer


@dataclass(frozen=True)
class _Walk:
    """What was seen of an ask among many, from its bytes to its answer."""

    passed: set[str]
    """By every ask; what ticks by itself is in some of them only."""
    touched: set[str]
    """By any of them."""
    calls_up: set[tuple[str, str]]


@pytest.fixture(scope="module")
def walk(new_database: NewDatabase) -> _Walk:
    """Several asks, traced one by one."""
    tracer = _Tracer()
    with _serving(new_database(), tracer) as port, socket.create_connection(("127.0.0.1", port), timeout=30) as client:
        assert b" 201 " in _answer(client, _NEW[1] % (len(_NEW[0]), _NEW[0]))
        for _ in range(40):
            _answer(client, _ASK)
        walks = []
        for _ in range(5):
            tracer.files, tracer.on = set(), True
            assert b" 201 " in _answer(client, _ASK)
            time.sleep(0.05)  # what is counted after the answer belongs to it
            tracer.on = False
            walks.append(tracer.files)
    return _Walk(set.intersection(*walks), set.union(*walks), tracer.calls_up)


def test_an_ask_passes_the_files_of_its_walk_and_no_other(walk: _Walk) -> None:
    """Read the page, and you have read the way."""
    named = set(_stops()) | _carried()
    assert walk.passed - named == set()
    assert named - walk.touched - _ENGINES == set()
    assert len(walk.passed & _ENGINES) == 1


def test_the_walk_is_short() -> None:
    """Sixteen stops, one of two for the database's engine, and twelve files that are carried along."""
    assert len(_stops()) - 1 == _MOST_STOPS
    assert len(_carried()) == _MOST_CARRIED


def test_every_name_on_the_walk_is_in_one_of_its_files_and_the_first_beside_a_file_in_that_one() -> None:
    """Functions that moved would leave the page behind."""
    texts = {path: (_ROOT / path).read_text() for path in (*_stops(), *_carried())}
    for path, step in _stops().items():
        names = re.findall(r"`(\w+)`", step)
        first = re.findall(r"`(\w+)`", step[step.index(path) :])[0]
        assert _defines(texts[path], first), (path, first)
        missing = {name for name in names if not any(_defines(text, name) for text in texts.values())}
        assert missing <= _THE_LOOPS_OWN, path


def _defines(code: str, name: str) -> bool:
    return re.search(rf"\b(?:def|class) {name}\b|^{name}\b.*=", code, re.MULTILINE) is not None


def test_the_engine_calls_nothing_above_it_but_recipients_and_commands(walk: _Walk) -> None:
    """Every call of an ask from a function of the engine into the layers above is by one of the two protocols."""
    declared = {"web": Recipient, "application": Command}
    assert [call for call in sorted(walk.calls_up) if call[1] not in vars(declared[call[0]])] == []
    assert {("web", "prepare"), ("web", "set_result"), ("application", "apply")} <= walk.calls_up
