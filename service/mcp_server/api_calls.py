"""Calls of the HTTP API whose failures are the tool's: a sentence with code and request id."""

from __future__ import annotations

import secrets
from typing import Any
from urllib.parse import quote

import httpx
from mcp.server.mcpserver.exceptions import ToolError

from service import __version__

_TIMEOUT_SECONDS = 60.0
_MOST_FIELDS = 5
_LONGEST_DETAIL = 1_000


class ApiCalls:
    """One service, called with one key."""

    def __init__(self, url: str, key: str | None) -> None:
        headers = {"User-Agent": f"bestarm-mcp/{__version__}"} | ({} if key is None else {"Authorization": f"Bearer {key}"})
        self._url = url.rstrip("/")
        self._http = httpx.AsyncClient(headers=headers, timeout=_TIMEOUT_SECONDS)

    async def get(self, path: str, **parameters: str | int | None) -> dict[str, Any]:
        """What is there; parameters that are None are left out."""
        given = {name: value for name, value in parameters.items() if value is not None}
        return await self._sent("GET", path, params=given)

    async def post(self, path: str, body: object = None) -> dict[str, Any]:
        """What it led to. It is sent once: whether to try again is for whoever called the tool."""
        return await self._sent("POST", path, json={} if body is None else body)

    async def _sent(self, method: str, path: str, **content: Any) -> dict[str, Any]:  # noqa: ANN401 - httpx's own
        request = secrets.token_hex(8)
        try:
            answer = await self._http.request(method, self._url + path, headers={"X-Request-Id": request}, **content)
        except httpx.HTTPError as trouble:
            unsure = "" if method == "GET" else " Read the experiment before you try again: it may have been done."
            raise ToolError(
                f"No answer from {self._url} ({type(trouble).__name__}).{unsure} [code unreachable, request {request}]"
            ) from None
        read = _object_of(answer)
        if answer.is_success and read is not None:
            return read
        raise ToolError(_refusal(answer, read or {}, request))

    async def close(self) -> None:
        """Let the connections go."""
        await self._http.aclose()


def path_of(experiment: str, rest: str = "") -> str:
    """The path of an experiment; no key, however it is written, leads to another route."""
    return f"/v1/experiments/{quote(experiment, safe='')}{rest}"


def _object_of(answer: httpx.Response) -> dict[str, Any] | None:
    try:
        read = answer.json()
    except ValueError:
        return None
    return read if isinstance(read, dict) else None


def _refusal(answer: httpx.Response, problem: dict[str, Any], request: str) -> str:
    detail = str(problem.get("detail") or f"The answer was {answer.status_code}, not from a bestarm service's API.")
    fields = problem.get("errors") or []
    named = "".join(f" {one.get('pointer', '')}: {one.get('detail', '')}" for one in fields[:_MOST_FIELDS])
    code = problem.get("code") or f"http_{answer.status_code}"
    return f"{(detail + named)[:_LONGEST_DETAIL]} [code {code}, request {problem.get('request_id') or request}]"
