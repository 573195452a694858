"""An application of a few lines below the real supervisor: it loads at once, and breaks when it is told to.

`python -m tests.supervision.small_service PORT HANG_SECONDS FOLDER` serves it with two workers until it is stopped. While there
is a file `broken` in the folder, no worker can start.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import uvicorn

from service import log_lines
from service.supervision.supervisor import Supervisor
from service.supervision.worker import Worker

WORKERS = 2
GRACE_SECONDS = 60


def spin() -> None:
    """Keep the event loop, and the processor."""
    while True:
        pass


def sleep() -> None:
    """Keep the event loop, but not the interpreter."""
    time.sleep(3_600)


def is_broken() -> bool:
    """Is there the file?"""
    return Path(os.environ["SMALL_SERVICE"], "broken").exists()


async def application(
    scope: dict[str, Any], receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]
) -> None:
    """Answers with the number of its process."""
    if scope["type"] == "lifespan":
        await receive()
        if is_broken():
            await send({"type": "lifespan.startup.failed", "message": "broken"})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})
        return
    {"/spin": spin, "/sleep": sleep}.get(scope["path"], os.getpid)()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(os.getpid()).encode(), "more_body": scope["path"] == "/endless"})
    if scope["path"] == "/endless":
        await receive()  # the body
        await receive()  # until the client leaves


def create() -> Callable[..., Awaitable[None]]:
    """What uvicorn runs."""
    log_lines.configure("info")
    return application


def main(port: int, hang_seconds: float) -> int:
    """Serve it."""
    log_lines.configure("info")
    config = uvicorn.Config(
        "tests.supervision.small_service:create",
        factory=True,
        workers=WORKERS,
        log_config=log_lines.standard_library("info"),
        access_log=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    with socket.socket() as bound:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(("127.0.0.1", port))
        return Supervisor(lambda: Worker(config, [bound], hang_seconds), WORKERS, bound.close).run()


if __name__ == "__main__":
    os.environ["SMALL_SERVICE"] = sys.argv[3]
    sys.exit(main(int(sys.argv[1]), float(sys.argv[2])))
