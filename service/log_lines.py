"""The log: one JSON object a line on standard output, our own events and those of uvicorn and the libraries alike.

Every line has `timestamp`, `level` and `event`; `request_id` if it is about a request, `logger` if it is not ours, `exception`
with the stack trace of a failure. It is written at once and whole, so that the lines of several workers do not mix.
"""

from __future__ import annotations

import logging
import sys
import threading
from typing import TYPE_CHECKING, Any

import structlog

from service.web.request_context import current_request_id

if TYPE_CHECKING:
    from types import TracebackType

    from structlog.typing import EventDict, Processor

log = structlog.get_logger(__name__)


def configure(level: str) -> None:
    """Log what is at this level or above it, uncaught exceptions and warnings of Python included; once in every process."""
    structlog.configure(
        processors=[*_common(), structlog.processors.JSONRenderer()],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(),
    )
    logging.captureWarnings(capture=True)
    sys.excepthook = _log_uncaught
    threading.excepthook = lambda ended: _log_uncaught(ended.exc_type, ended.exc_value, ended.exc_traceback)


def standard_library(level: str) -> dict[str, Any]:
    """The same for whoever logs by Python's own `logging`, as `logging.config` wants it: libraries are heard from warnings on."""
    chosen = level.upper()
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"json": {"()": f"{__name__}.json_formatter"}},
        "handlers": {"output": {"class": "logging.StreamHandler", "stream": "ext://sys.stdout", "formatter": "json"}},
        "root": {"handlers": ["output"], "level": "ERROR" if chosen == "ERROR" else "WARNING"},
        "loggers": {"uvicorn": {"level": chosen}},
    }


def json_formatter() -> logging.Formatter:
    """Makes a line of a record."""
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[structlog.stdlib.add_logger_name, *_common()],
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, structlog.processors.JSONRenderer()],
    )


def _common() -> list[Processor]:
    return [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso"),
        structlog.processors.format_exc_info,
        _complete,
    ]


def _complete(_logger: object, _method: str, entry: EventDict) -> EventDict:
    """What every line has comes first; then the request, if there is one, and what the event says of itself."""
    first = {name: entry.pop(name) for name in ("timestamp", "level", "event")}
    request_id = current_request_id()
    return {**first, "request_id": request_id, **entry} if request_id else {**first, **entry}


def _log_uncaught(kind: type[BaseException], failure: BaseException | None, trace: TracebackType | None) -> None:
    log.critical("nobody caught this", exc_info=(kind, failure, trace))
