"""The application: builds the engine, mounts the routers, owns the lifespan."""

from __future__ import annotations

import gc
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import structlog
from fastapi import FastAPI
from fastapi.routing import APIRoute

from service import __version__
from service.application.context import Context
from service.application.sweeping import Sweeper
from service.application.writer import Writer
from service.settings import Settings
from service.storage.database import Database
from service.web import problems
from service.web.dashboard import overview, pages
from service.web.metrics import MetricsMiddleware
from service.web.polls import Polls
from service.web.request_id import RequestIdMiddleware, current_request_id
from service.web.routes import assignments, charts, experiments, operations, recommendation, rewards, stream
from service.web.same_origin import SameOriginMiddleware
from service.web.stopping import told_of_stop

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from structlog.typing import EventDict

_ALLOCATIONS_PER_COLLECTION = 20_000
_ABOUT = "Live adaptive experiments: ask which arm to show, tell what happened, look which arm is best and how sure that is."


class _Application(FastAPI):
    """FastAPI whose document shows our errors."""

    def openapi(self) -> dict[str, Any]:
        """The OpenAPI document, made once."""
        if self.openapi_schema is None:
            self.openapi_schema = problems.describe(super().openapi())
        return self.openapi_schema


def create_app(settings: Settings | None = None) -> FastAPI:
    """A new application; it opens the database when it starts and closes it when it stops."""
    chosen = settings or Settings()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        database = Database(chosen.database_url)
        writer = Writer(database, queue_limit=chosen.queue_limit)
        context = Context.over(database, writer)
        sweeper = Sweeper(context, chosen.sweep_seconds)
        app.state.context = context
        writer.start()
        sweeper.start()
        context.watcher.start()
        _spare_the_collector()
        with told_of_stop(context.watcher.end_streams):
            yield
        await context.watcher.close()
        await sweeper.close()
        await writer.close()
        await database.close()

    app = _Application(
        title="bestarm",
        version=__version__,
        description=_ABOUT,
        lifespan=lifespan,
        generate_unique_id_function=_operation_id,
        docs_url=None,  # the dashboard draws its own, without other hosts
        redoc_url=None,
    )
    problems.install(app)
    for module in (experiments, assignments, rewards, recommendation, stream, charts, operations, overview):
        app.include_router(module.router)
    pages.install(app)
    app.add_middleware(SameOriginMiddleware)
    app.add_middleware(RequestIdMiddleware)
    app.add_middleware(MetricsMiddleware)
    app.add_middleware(Polls, state=app.state)
    return app


def _spare_the_collector() -> None:
    """What has been imported stays for good, and requests leave no cycles: looking for them less often costs nothing."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_ALLOCATIONS_PER_COLLECTION)


def create_server() -> FastAPI:
    """What uvicorn runs: the application, and logs as JSON lines."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            _add_request_id,
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ]
    )
    return create_app()


def _add_request_id(_logger: object, _method: str, entry: EventDict) -> EventDict:
    request_id = current_request_id()
    return {**entry, "request_id": request_id} if request_id else entry


def _operation_id(route: APIRoute) -> str:
    """Short operation ids: the function's name."""
    return route.name
