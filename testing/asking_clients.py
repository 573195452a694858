"""Clients that ask without a pause, whatever happens to the service, and remember what they were answered."""

from __future__ import annotations

import http.client
import json
import ssl
import time
from contextlib import closing
from threading import Event, Thread
from typing import Self
from urllib.parse import urlsplit

from testing.json_client import JsonClient

_CLIENTS = 4
_PAUSE_SECONDS = 0.02
_WAIT_SECONDS = 120


class AskingClients:
    """Asks for arms of one experiment from several connections, until the block ends."""

    def __init__(
        self,
        url: str,
        experiment: str,
        *,
        secret: str | None = None,
        trusting: ssl.SSLContext | None = None,
        clients: int = _CLIENTS,
    ) -> None:
        self._address, self._trusting = urlsplit(url).netloc, trusting
        self._path = f"/v1/experiments/{experiment}/assignments"
        self._headers = {"content-type": "application/json"} | ({} if secret is None else {"authorization": f"Bearer {secret}"})
        self.answered: list[str] = []
        """The ids of assignments that were answered."""
        self.refused: list[int] = []
        """Other statuses than success."""
        self.broken: list[str] = []
        """How connections ended on which an answer was awaited."""
        self.sent = 0
        self._stop = Event()
        self._threads = [Thread(target=self._ask, daemon=True) for _ in range(clients)]

    def _ask(self) -> None:
        with closing(self._new_connection()) as connection:
            while not self._stop.is_set():
                try:
                    if connection.sock is None:
                        connection.connect()
                except OSError:
                    time.sleep(_PAUSE_SECONDS)
                    continue
                self.sent += 1
                try:
                    connection.request("POST", self._path, "{}", self._headers)
                    with connection.getresponse() as answer:
                        content = answer.read()
                except (OSError, http.client.HTTPException) as ended:
                    self.broken.append(repr(ended))
                    connection.close()
                    continue
                if answer.status == 201:
                    self.answered.append(json.loads(content)["id"])
                else:
                    self.refused.append(answer.status)
                    time.sleep(_PAUSE_SECONDS)

    def _new_connection(self) -> http.client.HTTPConnection:
        if self._trusting is None:
            return http.client.HTTPConnection(self._address, timeout=60)
        return http.client.HTTPSConnection(self._address, timeout=60, context=self._trusting)

    def wait_for(self, answers: int) -> None:
        """Until so many were answered in all."""
        deadline = time.monotonic() + _WAIT_SECONDS
        while len(self.answered) < answers:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{len(self.answered)} answers, {self.refused[-3:]}, {self.broken[-3:]}")
            time.sleep(0.05)

    def stored(self, wire: JsonClient) -> set[str]:
        """The ids of all assignments that the service has."""
        found: set[str] = set()
        page: str | None = ""
        while page is not None:
            reply = wire.send("GET", f"{self._path}?page_size=1000{page}")
            assert reply.status == 200, reply
            found.update(one["id"] for one in reply.body["assignments"])
            page = f"&page_token={reply.body['next_page_token']}" if reply.body.get("next_page_token") else None
        return found

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
