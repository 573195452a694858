"""A small, fast HTTP client for tests that send thousands of requests: one connection, JSON in and out."""

from __future__ import annotations

import http.client
import json
import time
from typing import Any, NamedTuple, Self
from urllib.parse import urlsplit

# A service may close a connection that was idle for some seconds; by then a new one has been opened.
_IDLE_SECONDS = 2.0


class Reply(NamedTuple):
    """What came back."""

    status: int
    headers: http.client.HTTPMessage
    body: Any


class JsonClient:
    """A keep-alive connection to a service."""

    def __init__(self, url: str, *, by_framework: bool = False, key: str | None = None) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
        # A request with this header takes the long way, to the framework's handler of the same use case.
        self._headers = {"content-type": "application/json"} | ({"proxy-connection": "keep-alive"} if by_framework else {})
        self._headers |= {} if key is None else {"authorization": f"Bearer {key}"}
        self._used_at = 0.0

    def send(self, method: str, path: str, body: object = None, **headers: str) -> Reply:
        """One request and its answer."""
        content = None if body is None else json.dumps(body)
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if time.monotonic() - self._used_at > _IDLE_SECONDS:
            self._connection.close()
        self._used_at = time.monotonic()
        self._connection.request(method, path, content, self._headers | given)
        answer = self._connection.getresponse()
        read = answer.read()
        is_json = bool(read) and "json" in answer.headers.get("content-type", "")
        return Reply(answer.status, answer.headers, json.loads(read) if is_json else read or None)

    def create(self, key: str, **settings: Any) -> Any:  # noqa: ANN401 - any JSON
        """A new experiment."""
        reply = self.send("POST", "/v1/experiments", {"key": key} | settings)
        assert reply.status == 201, reply
        return reply.body

    def ask(self, key: str, unit: str | None = None, **headers: str) -> Any:  # noqa: ANN401 - any JSON
        """One assignment."""
        reply = self.send("POST", f"/v1/experiments/{key}/assignments", {} if unit is None else {"unit": unit}, **headers)
        assert reply.status in (200, 201), reply
        return reply.body

    def tell(self, key: str, assignment: str, reward: float) -> Any:  # noqa: ANN401 - any JSON
        """One reward."""
        reply = self.send("POST", f"/v1/experiments/{key}/assignments/{assignment}/reward", {"reward": reward})
        assert reply.status == 200, reply
        return reply.body

    def close(self) -> None:
        """Hang up; the next request connects again."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def arms(number: int) -> list[dict[str, Any]]:
    """So many arms, named by their positions."""
    return [{"key": f"arm-{position}", "value": position} for position in range(number)]
