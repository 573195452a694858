"""Observations as a stream of JSON lines: a body of any length, told part by part while it comes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

from starlette.requests import ClientDisconnect

from service.application.commands.tell import Observe
from service.application.commands.tell_lines import tell_lines
from service.application.imports.import_tally import ImportTally
from service.application.reads import experiment_descriptions
from service.domain.callers import Access
from service.domain.limits import MOST_WAITING_READS, STREAMED_PART_BYTES, STREAMED_PART_SECONDS
from service.errors import BestArmError
from service.web.access.credentials import CALLER
from service.web.api.line_buffer import LineBuffer
from service.web.api.parameters import json_response
from service.web.problems import BadRequest, problem_for
from service.web.request_context import BODY_PACE

if TYPE_CHECKING:
    from fastapi import Request, Response

    from service.application.commands.tell_lines import ToldLines
    from service.application.context import Context
    from service.web.request_context import BodyPace

MEDIA_TYPE = "application/x-ndjson"
_KEYED = "An Idempotency-Key is for a whole body: a stream is told part by part. Give its lines an `id`."
_FULL_SECONDS = 0.5


def is_stream(request: Request) -> bool:
    """Is its body one of JSON lines?"""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower() == MEDIA_TYPE


async def answer_stream(request: Request) -> Response:
    """Tell what comes; the answer sums it up. A failure says how far it came."""
    if "idempotency-key" in request.headers:
        raise BadRequest(422, "validation_failed", _KEYED, [{"pointer": "/header/Idempotency-Key", "detail": _KEYED}])
    context, access = request.app.state.context, Access(request.scope[CALLER], request.path_params["key"])
    access.caller.admit(access.key, Observe(()))
    with context.observation_streams.one_of(access.caller):
        await experiment_descriptions.size_of(context, access.key)  # before the client has sent much for nothing
        stream = _Stream(context, access)
        try:
            await stream.read(request)
        except BestArmError as failure:
            how_far = f"All lines up to number {stream.through} are durable or were refused; of later ones some may be."
            return problem_for(failure, {"Bestarm-Lines": str(stream.through)}, besides=how_far)
    return json_response(_summary(stream.tally))


class _Stream:
    """A stream, and how far it has come."""

    def __init__(self, context: Context, access: Access) -> None:
        self._context, self._access = context, access
        self._buffer = LineBuffer()
        self.tally = ImportTally()
        self.through = 0
        """The number of the last line up to which all are durable, or refused."""

    async def read(self, request: Request) -> None:
        """Until its end: a part is told when it is long enough, and when nothing more comes for a while."""
        pace = cast("BodyPace | None", request.scope.get(BODY_PACE))
        more, is_theirs = True, False
        while more:
            if not is_theirs:  # more came or was told: one that ends no line has nothing to tell, and would outlive its key
                await self._context.callers.require_still_taken(self._access.caller)
                if pace is not None:
                    pace.await_body()
            arrived = await _next_piece(request)
            is_theirs = arrived is None
            if arrived is not None:
                self._buffer.add(arrived["body"])
                more = arrived["more_body"]
            if is_theirs or not more or len(self._buffer) >= STREAMED_PART_BYTES:
                part = self._buffer.take() if more else self._buffer.take_all()
                if part:
                    if pace is not None:
                        pace.hold_body()
                    await self._tell(part)
                    is_theirs = False

    async def _tell(self, part: bytes) -> None:
        told = await self._told(part)
        self.tally.join(told.tally)
        self.through = told.through
        if told.failure is not None:
            raise told.failure

    async def _told(self, part: bytes) -> ToldLines:
        """In the lane, if the key is still good; a stream that is under way waits a while for a place there rather than fail."""
        lane = self._context.lanes.changes
        for _ in range(MOST_WAITING_READS):
            if not lane.is_full:
                break
            await asyncio.sleep(_FULL_SECONDS)
        # Once: where its process ends, it may have told some of them, and a line without an id would count again.
        return await lane.run(self._access.caller, tell_lines, self._access, self.through, part)


async def _next_piece(request: Request) -> dict[str, Any] | None:
    """More of the body; None if there is none for the time being."""
    try:
        async with asyncio.timeout(STREAMED_PART_SECONDS):
            message = await request.receive()
    except TimeoutError:
        return None
    if message["type"] == "http.disconnect":
        raise ClientDisconnect
    return {"body": message.get("body", b""), "more_body": message.get("more_body", False)}


def _summary(tally: ImportTally) -> dict[str, Any]:
    counts = {outcome: tally.outcomes[outcome] for outcome in ("recorded", "duplicate", "conflict", "not_found", "invalid")}
    return {"lines": tally.lines, **counts, "refused": [line._asdict() for line in tally.named]}
