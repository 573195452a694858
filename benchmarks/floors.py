"""The floors of the hot path: what the same server answers when it does less and less of the work."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from fastapi import FastAPI
from pydantic import BaseModel


async def bare(scope: dict[str, Any], receive: Any, send: Any) -> None:  # noqa: ANN401 - ASGI
    """A plain ASGI hello."""
    if scope["type"] != "http":
        return
    await receive()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


class _Ask(msgspec.Struct):
    unit: Annotated[str, msgspec.Meta(max_length=255)] | None = None


class _Answer(msgspec.Struct):
    id: str
    experiment: str
    arm: str
    value: Any
    unit: str | None
    draw: int
    reason: str
    status: str
    created_at: str
    expires_at: str | None


_read = msgspec.json.Decoder(_Ask).decode
_write = msgspec.json.Encoder().encode


async def raw(scope: dict[str, Any], receive: Any, send: Any) -> None:  # noqa: ANN401 - ASGI
    """An ask as a raw ASGI route, msgspec in and out, no database."""
    if scope["type"] != "http":
        return
    asked = _read((await receive())["body"] or b"{}")
    answer = _write(_Answer("asg_0", "hot", "a1", None, asked.unit, 1, "track", "pending", "2026-01-01T00:00:00.000000Z", None))
    headers = [(b"content-length", b"%d" % len(answer)), (b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": 201, "headers": headers})
    await send({"type": "http.response.body", "body": answer})


framework = FastAPI()


class AskIn(BaseModel):
    """The body of an ask."""

    unit: str | None = None


class AskOut(BaseModel):
    """The answer to an ask."""

    id: str
    experiment: str
    arm: str
    value: Any
    unit: str | None
    draw: int
    reason: str
    status: str
    created_at: str
    expires_at: str | None


@framework.post("/v1/experiments/{key}/assignments", status_code=201)
async def ask(key: str, body: AskIn) -> AskOut:
    """An ask as a FastAPI route, pydantic in and out, no database."""
    return AskOut(
        id="asg_0",
        experiment=key,
        arm="a1",
        value=None,
        unit=body.unit,
        draw=1,
        reason="track",
        status="pending",
        created_at="2026-01-01T00:00:00.000000Z",
        expires_at=None,
    )


@framework.get("/empty")
async def empty() -> dict[str, str]:
    """The cheapest FastAPI route."""
    return {}
