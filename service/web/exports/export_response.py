"""The answer that is an export: its process starts with the answer and is gone with it, however it ends."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog
from fastapi import Response

from service.application.live.export_lane import ExportBroken, ExportFailed
from service.domain.limits import LONGEST_EXPORT_SECONDS
from service.errors import BestArmError, Unauthorized
from service.web.exports import export_process
from service.web.exports.export_file import MEDIA_TYPES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.types import Receive, Scope, Send

    from service.application.context import Context
    from service.application.live.export_lane import RunningExport
    from service.application.live.known_callers import KnownCallers
    from service.domain.callers import Caller
    from service.web.exports.export_file import FileOrder

log = structlog.get_logger(__name__)


class ExportResponse(Response):
    """A file of unknown length, sent in chunks: only the last one, which is empty, says that it is whole."""

    def __init__(self, context: Context, caller: Caller, wanted: FileOrder) -> None:
        super().__init__(media_type=MEDIA_TYPES[wanted.format])
        self._context, self._caller, self._wanted = context, caller, wanted
        del self.headers["content-length"]
        self.headers["Content-Disposition"] = f'attachment; filename="{wanted.file_name}"'
        self.headers["Cache-Control"] = "no-store"
        self.headers["X-Accel-Buffering"] = "no"  # a proxy that buffers would hold all of it

    def only_head(self) -> Response:
        """What a HEAD is answered: nothing is read for it."""
        head = Response()
        head.raw_headers = self.raw_headers
        return head

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it; what cannot even begin is a problem like any other, what breaks off has no last chunk."""
        order = export_process.order_line(self._context.database.row_source, self._wanted)
        async with self._context.lanes.exports.run(self._caller, export_process.__name__, order) as export:
            watch = asyncio.create_task(_end_with_reader(receive, export))
            try:
                self.headers["Bestarm-Version"] = str(export.version)
                await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
                async with asyncio.timeout(LONGEST_EXPORT_SECONDS):
                    pieces = _pieces_for(export, self._context.callers, self._caller)
                    await _send_all(pieces, send, scope["app"].state.connections.limits.body_seconds)
            except (ExportBroken, ExportFailed, TimeoutError) as broken:
                if not watch.done():  # its reader is still there, and sees that the file has no end
                    of, reason = self._wanted.order.of, str(broken) or "its reader takes too long"
                    log.warning("an export broke off", key=self._wanted.order.key, of=of, reason=reason)
            finally:
                watch.cancel()


async def _pieces_for(export: RunningExport, callers: KnownCallers, caller: Caller) -> AsyncIterator[bytes]:
    """The pieces as long as they are for this caller: a file that is read for an hour ends with its key."""
    async for piece in export.pieces():
        try:
            await callers.require_still_taken(caller)
        except Unauthorized as refused:
            raise ExportBroken(f"Its key: {refused.reason or refused}") from refused
        except BestArmError as unknown:
            raise ExportBroken(str(unknown)) from unknown
        yield piece


async def _send_all(pieces: AsyncIterator[bytes], send: Send, piece_seconds: float) -> None:
    """Every piece has to be taken in time: a reader that has stopped would keep its place for ever."""
    async for piece in pieces:
        async with asyncio.timeout(piece_seconds):
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _end_with_reader(receive: Receive, export: RunningExport) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    export.end()
