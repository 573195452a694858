"""Names to addresses, by a thread that nobody has to wait for.

`getaddrinfo` knows no time-out: a name server that is silent holds it for half a minute. So it runs in a thread of its own, one
for each name at a time, however many calls wait for it, and a call that cannot wait longer leaves it behind.
"""

from __future__ import annotations

import encodings.idna  # noqa: F401 - a socket would load it at the first ask
import ipaddress
import socket
import threading
from concurrent.futures import Future


def is_address(host: str) -> bool:
    """Whether the host is an address already."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


class Resolver:
    """Resolves each name once at a time. Where no thread can start, it fails, except at the end of a program.

    From Python 3.12 on no thread starts there, while queued rewards are still to be sent: so who asks does it, without a bound,
    if it `may_wait`. An event loop may not.
    """

    def __init__(self, *, may_wait: bool) -> None:
        self._may_wait = may_wait
        self._lock = threading.Lock()
        self._waiting: dict[tuple[str, int], Future[list[str]]] = {}

    def addresses(self, host: str, port: int) -> Future[list[str]]:
        """The addresses of a name, in the order to try them in."""
        with self._lock:
            known = self._waiting.get((host, port))
            if known is not None:
                return known
            found = self._waiting[host, port] = Future()
        self._start(host, port, found)
        return found

    def _start(self, host: str, port: int, found: Future[list[str]]) -> None:
        resolving = threading.Thread(target=self._resolve, args=(host, port, found), name="bestarm-resolver", daemon=True)
        try:
            resolving.start()
        except RuntimeError as trouble:  # there are too many, or the interpreter is shutting down
            if self._may_wait and "shutdown" in str(trouble):
                self._resolve(host, port, found)
            else:
                self._settle(host, port, found, OSError(str(trouble)))

    def _resolve(self, host: str, port: int, found: Future[list[str]]) -> None:
        try:
            listed = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            answer: list[str] | OSError = list(dict.fromkeys(str(address[0]) for *_, address in listed))
        except (OSError, UnicodeError) as trouble:
            answer = OSError(f"{host} does not resolve: {trouble}")
        self._settle(host, port, found, answer)

    def _settle(self, host: str, port: int, found: Future[list[str]], answer: list[str] | OSError) -> None:
        with self._lock:
            self._waiting.pop((host, port), None)
        if isinstance(answer, OSError):
            found.set_exception(answer)
        else:
            found.set_result(answer)
