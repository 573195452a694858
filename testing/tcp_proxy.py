"""A proxy between a service and its PostgreSQL that breaks connections at a chosen moment of a conversation."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Literal, Self, TypeAlias, get_args

from testing.commit_recogniser import CommitRecogniser
from testing.server import free_port

Cut: TypeAlias = Literal["before", "after", "within_answer", "half_close", "delay", "silence"]
"""What happens to the next message of the service: the connection is cut before it goes on, or when the database has answered it
and nobody has heard that, or in the middle of the answer; the database seems to say goodbye; it is held up; or from then on
nothing passes, and nobody is told."""
CUTS: tuple[Cut, ...] = get_args(Cut)
CommitCut: TypeAlias = Literal["before", "after"]
"""What happens to the next commit: it never comes to the database, or nobody hears what became of it."""
COMMIT_CUTS: tuple[CommitCut, ...] = get_args(CommitCut)
# A closing socket with this option sends a reset: what was on its way is lost, and the other side is told so.
_RESET = struct.pack("ii", 1, 0)
_DELAY_SECONDS = 1.0


class _Link:
    """A connection from the service, and the one from here to the database."""

    def __init__(self, near: socket.socket, far: socket.socket) -> None:
        self.near, self.far = near, far
        self.cut: Cut | None = None
        self.is_silent = False

    def reset(self) -> None:
        """End both ways at once."""
        for end in (self.near, self.far):
            with suppress(OSError):
                if end.family != socket.AF_UNIX:
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                end.shutdown(socket.SHUT_RD)  # whoever reads from it wakes up
            with suppress(OSError):
                end.close()


class TcpProxy:
    """Listens on a port of its own and passes everything on to a PostgreSQL's socket."""

    def __init__(self, upstream: Path) -> None:
        self.upstream = upstream
        self.port = free_port()
        self.cuts: deque[Cut] = deque()
        """Each happens to the next message that comes."""
        self.commit_cuts: deque[CommitCut] = deque()
        """Each happens to the next message that commits what was written."""
        self.injected = 0
        self._links: set[_Link] = set()
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", self.port), backlog=128)
        threading.Thread(target=self._accept, daemon=True).start()

    def url(self, database: str) -> str:
        """How a service is told to connect through it."""
        return f"postgresql://bestarm@127.0.0.1:{self.port}/{database}"

    def cut_all(self) -> int:
        """Cut whatever is connected; how many that were."""
        links = list(self._links)
        for link in links:
            link.reset()
        return len(links)

    def end_silence(self) -> None:
        """Cut those that nothing passes through any more, as the network does in the end."""
        for link in list(self._links):
            if link.is_silent:
                link.reset()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.socket(socket.AF_UNIX)
                try:
                    far.connect(str(self.upstream))
                except OSError:
                    near.close()
                    far.close()
                    continue
                near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                link = _Link(near, far)
                self._links.add(link)
                threading.Thread(target=self._pump_forth, args=(link,), daemon=True).start()
                threading.Thread(target=self._pump_back, args=(link,), daemon=True).start()

    def _next_cut(self, *, commits: bool) -> Cut | None:
        with self._lock:
            waiting = self.commit_cuts if commits and self.commit_cuts else self.cuts
            if not waiting:
                return None
            self.injected += 1
            return waiting.popleft()

    def _pump_forth(self, link: _Link) -> None:
        """What the service says."""
        recogniser = CommitRecogniser()
        with suppress(OSError):
            while said := link.near.recv(65_536):
                commits = recogniser.has_commit(said)
                cut = self._next_cut(commits=commits) if said[:1] not in {b"X", b"\0"} else None  # no greeting, no goodbye
                if cut == "before":
                    break
                if cut == "delay":
                    time.sleep(_DELAY_SECONDS)
                elif cut == "silence":
                    link.is_silent = True
                elif cut is not None:
                    link.cut = cut
                if not link.is_silent:
                    link.far.sendall(said)
        self._end(link)

    def _pump_back(self, link: _Link) -> None:
        """What the database says."""
        with suppress(OSError):
            while said := link.far.recv(65_536):
                if link.cut == "after":
                    break
                if link.cut == "within_answer":
                    link.near.sendall(said[: len(said) // 2])
                    break
                if link.cut == "half_close":
                    link.near.shutdown(socket.SHUT_WR)
                    time.sleep(_DELAY_SECONDS)
                    break
                if not link.is_silent:
                    link.near.sendall(said)
        self._end(link)

    def _end(self, link: _Link) -> None:
        self._links.discard(link)
        link.reset()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
        self.cut_all()


def postgres_socket(folder: Path) -> Path:
    """The socket of a PostgreSQL in its folder."""
    return folder / ".s.PGSQL.5432"
