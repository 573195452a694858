"""The application: builds the engine, mounts the routers, owns the lifespan."""

from __future__ import annotations

import gc
import math
import resource
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from fastapi.routing import APIRoute

from service import __version__, log_lines
from service.application.background import Repeated
from service.application.commands.delete import Deleter
from service.application.commands.expire import Sweeper
from service.application.context import Context
from service.engine.writer import Writer
from service.settings import Settings
from service.storage.database import Database
from service.web import problems
from service.web.api import (
    assignment_routes,
    experiment_routes,
    instance_routes,
    observation_routes,
    operations_routes,
    reward_routes,
)
from service.web.api.body import BodyMemory
from service.web.dashboard import overview_routes, pages, plan_routes
from service.web.fast_path.connection import ConnectionLimits, OpenConnections
from service.web.fast_path.protocol import FastPathState
from service.web.hosts import AllowedHosts
from service.web.live import chart_routes, recommendation_routes, stream_routes
from service.web.live.stop_signal import calling_at_stop
from service.web.middleware.head_requests import HeadMiddleware
from service.web.middleware.known_host import KnownHostMiddleware
from service.web.middleware.not_modified import NotModifiedMiddleware
from service.web.middleware.request_id import RequestIdMiddleware
from service.web.middleware.request_timing import RequestTimingMiddleware
from service.web.middleware.same_origin import SameOriginMiddleware

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_ROUTES = (
    experiment_routes,
    assignment_routes,
    reward_routes,
    observation_routes,
    recommendation_routes,
    stream_routes,
    chart_routes,
    instance_routes,
    operations_routes,
    overview_routes,
    plan_routes,
)
_ALLOCATIONS_PER_COLLECTION = 20_000
_FILES_OF_OUR_OWN = 64
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
    hosts = AllowedHosts(chosen.host, [name.strip() for name in chosen.allowed_hosts.split(",") if name.strip()])

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        database = Database(chosen.database_url)
        writer = Writer(database, queue_limit=chosen.queue_limit)
        context = Context.over(database, writer)
        beside_requests = [
            Repeated("sweep", Sweeper(context).round, chosen.sweep_seconds),
            Repeated("removal of deleted experiments", Deleter(context).remove_all, chosen.sweep_seconds),
        ]
        app.state.context = context
        app.state.fast_path = FastPathState(hosts.accepted)
        app.state.connections = connections = OpenConnections(_connection_limits(chosen))
        connections.start()
        writer.start()
        for work in beside_requests:
            work.start()
        context.watcher.start()
        _spare_the_collector()
        with calling_at_stop(context.watcher.end_streams):
            yield
        connections.close()
        await context.watcher.close()
        for work in beside_requests:
            await work.close()
        await context.lanes.close()
        await writer.close()
        await database.close()

    app = _Application(
        title="bestarm",
        version=__version__,
        description=_ABOUT,
        lifespan=lifespan,
        generate_unique_id_function=_operation_id,
        redirect_slashes=False,  # a path is a route or it is not
        docs_url=None,  # the dashboard draws its own, without other hosts
        redoc_url=None,
    )
    app.state.body_memory = BodyMemory()
    problems.install(app)
    for routes in _ROUTES:
        app.include_router(routes.router)
    pages.install(app)
    app.add_middleware(SameOriginMiddleware)
    app.add_middleware(RequestIdMiddleware)
    app.add_middleware(RequestTimingMiddleware)
    app.add_middleware(NotModifiedMiddleware, state=app.state)
    app.add_middleware(HeadMiddleware)
    app.add_middleware(KnownHostMiddleware, hosts=hosts)
    return app


def _connection_limits(settings: Settings) -> ConnectionLimits:
    """As they are set; but files, and the database's own connections, need some of what the system lets a process open."""
    may_open = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    for_clients = math.inf if may_open == resource.RLIM_INFINITY else max(may_open - _FILES_OF_OUR_OWN, may_open // 2)
    return ConnectionLimits(
        head_seconds=settings.head_seconds,
        body_seconds=settings.body_seconds,
        keep_alive_seconds=settings.keep_alive_seconds,
        head_bytes=settings.head_bytes,
        connections=int(min(settings.connection_limit, for_clients)),
    )


def _spare_the_collector() -> None:
    """What has been imported stays for good, and requests leave no cycles: looking for them less often costs nothing."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_ALLOCATIONS_PER_COLLECTION)


def create_server() -> FastAPI:
    """What uvicorn runs: the application, and its log."""
    settings = Settings()
    log_lines.configure(settings.log_level)
    return create_app(settings)


def _operation_id(route: APIRoute) -> str:
    """Short operation ids: the function's name."""
    return route.name
