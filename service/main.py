"""The application: builds the engine, mounts the routers, owns the lifespan."""

from __future__ import annotations

import asyncio
import gc
import math
import resource
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import structlog
from fastapi import FastAPI
from fastapi.routing import APIRoute

from service import __version__, log_lines
from service.application.background import Repeated
from service.application.commands.delete import Deleter
from service.application.commands.expire import Sweeper
from service.application.context import Context
from service.application.live.known_callers import REFRESH_SECONDS, KnownCallers
from service.application.live.known_sessions import SWEEP_SECONDS
from service.application.live.vital_signs import EVERY_SECONDS, VitalSigns
from service.application.webhooks.outbox import Outbox
from service.application.webhooks.retries import RetrySchedule
from service.application.webhooks.sender import Sender
from service.domain.notices import Pace
from service.engine.writer import Writer
from service.settings import Settings
from service.storage.database import Database
from service.web import problems
from service.web.access.rate_limits import Rate, RateLimits
from service.web.access_log import AccessLog
from service.web.api import (
    api_key_routes,
    assignment_routes,
    experiment_routes,
    instance_routes,
    observation_routes,
    operations_routes,
    reward_routes,
    webhook_routes,
)
from service.web.api.body import BodyMemory
from service.web.api.links import link
from service.web.dashboard import oidc_routes, overview_routes, pages, plan_routes, session_routes
from service.web.exports import export_routes
from service.web.fast_path.open_connections import ConnectionLimits, OpenConnections
from service.web.fast_path.protocol import FastPathState
from service.web.hosts import AllowedHosts, is_loopback
from service.web.live import chart_routes, recommendation_routes, stream_routes
from service.web.live.stop_signal import calling_at_stop
from service.web.middleware.cross_origin import CrossOriginMiddleware
from service.web.middleware.head_requests import HeadMiddleware
from service.web.middleware.known_caller import KnownCallerMiddleware
from service.web.middleware.known_host import KnownHostMiddleware
from service.web.middleware.logged_requests import LoggedRequestsMiddleware
from service.web.middleware.not_modified import NotModifiedMiddleware
from service.web.middleware.ofrep_failures import OfrepFailuresMiddleware
from service.web.middleware.request_id import RequestIdMiddleware
from service.web.middleware.request_timing import RequestTimingMiddleware
from service.web.middleware.same_origin import SameOriginMiddleware
from service.web.ofrep import evaluation_routes, flag_stream_routes
from service.web.request_metrics import KEYS_COUNTED_SECONDS, show_requests_by_key

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from service.web.access.identity_provider import IdentityProvider
    from service.web.access.provider_settings import ProviderSettings
    from service.web.request_spans import RequestSpans

log = structlog.get_logger(__name__)
_ROUTES = (
    experiment_routes,
    assignment_routes,
    reward_routes,
    observation_routes,
    recommendation_routes,
    stream_routes,
    chart_routes,
    export_routes,
    instance_routes,
    api_key_routes,
    webhook_routes,
    operations_routes,
    overview_routes,
    plan_routes,
    evaluation_routes,
    flag_stream_routes,
    session_routes,
    oidc_routes,
)
_ALLOCATIONS_PER_COLLECTION = 20_000
_FILES_OF_OUR_OWN = 64
_ABOUT = "Live adaptive experiments: ask which arm to show, tell what happened, look which arm is best and how sure that is."


class _Application(FastAPI):
    """FastAPI whose document shows our errors, and where answers lead."""

    def openapi(self) -> dict[str, Any]:
        """The OpenAPI document, made once."""
        if self.openapi_schema is None:
            self.openapi_schema = problems.describe(super().openapi())
            link(self.openapi_schema)
        return self.openapi_schema


def create_app(settings: Settings | None = None) -> FastAPI:
    """A new application; it opens the database when it starts and closes it when it stops."""
    chosen = settings or Settings()
    hosts = AllowedHosts(chosen.reachable_at, chosen.allowed_host_names, insecure=chosen.insecure)
    rates = RateLimits(Rate(chosen.rate_limit, chosen.rate_burst), Rate(chosen.public_rate_limit, chosen.public_rate_burst))

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        database = Database(chosen.database_url)
        writer = _writer(database, chosen)
        sender = Sender(chosen.webhook_networks, chosen.webhook_timeout_seconds)
        context = Context.over(database, writer, callers_of(database, chosen), sender)
        beside_requests = _work_beside_requests(context, chosen)
        app.state.context = context
        app.state.fast_path = FastPathState(
            hosts.accepted, context.callers, rates if rates.limits_secret_keys else None, app.state.access_log
        )
        app.state.connections = connections = OpenConnections(_connection_limits(chosen))
        connections.start()
        writer.start()
        await context.callers.start()
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
        await sender.close()
        await context.lanes.close()
        await writer.close()
        await database.close()
        if app.state.spans is not None:
            await asyncio.to_thread(app.state.spans.close)

    app = _Application(
        title="bestarm",
        version=__version__,
        description=_ABOUT,
        lifespan=lifespan,
        generate_unique_id_function=_operation_id,
        redirect_slashes=False,  # a path is a route or it is not
        docs_url=None,  # the dashboard draws its own, without other hosts
        redoc_url=None,
        # Its own traces would have whole paths in them, and with those units.
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
    )
    app.state.rates = rates
    _fill_state(app, chosen)
    problems.install(app)
    for routes in _ROUTES:
        app.include_router(routes.router)
    pages.install(app)
    _add_middleware(app, chosen, hosts)
    return app


def _fill_state(app: FastAPI, settings: Settings) -> None:
    """What requests find there from the beginning on."""
    app.state.spans = _request_spans(settings)
    app.state.body_memory = BodyMemory()
    app.state.access_log = None
    if settings.access_log:
        app.state.access_log = AccessLog(lambda: settings.insecure and app.state.context.callers.is_open)
    app.state.public_url = settings.public_url
    app.state.provider = _identity_provider(settings.provider())


def _add_middleware(app: FastAPI, settings: Settings, hosts: AllowedHosts) -> None:
    """What every request passes on its way to a route: the one that is added last comes first."""
    app.add_middleware(KnownCallerMiddleware, state=app.state)
    app.add_middleware(SameOriginMiddleware)
    app.add_middleware(RequestIdMiddleware)
    app.add_middleware(RequestTimingMiddleware)
    app.add_middleware(NotModifiedMiddleware, state=app.state)
    app.add_middleware(KnownHostMiddleware, hosts=hosts)
    app.add_middleware(OfrepFailuresMiddleware)
    if settings.cors_origin_names:
        app.add_middleware(CrossOriginMiddleware, origins=settings.cors_origin_names)
    if app.state.access_log is not None:
        app.add_middleware(LoggedRequestsMiddleware, log=app.state.access_log)
    if app.state.spans is not None:
        from service.web.middleware.traced_requests import TracedRequestsMiddleware  # noqa: PLC0415 - not there without the extra

        app.add_middleware(TracedRequestsMiddleware, state=app.state)
    app.add_middleware(HeadMiddleware)


def callers_of(database: Database, settings: Settings) -> KnownCallers:
    """Who may call; where there are no keys everybody, if only this machine's users reach it, or the operator wants it so."""
    return KnownCallers(
        database,
        settings.admin_key_in_use(),
        settings.provider_ground(),
        may_be_open=settings.insecure or is_loopback(settings.reachable_at),
        when_open=partial(_say_that_it_is_open, settings),
    )


def _say_that_it_is_open(settings: Settings) -> None:
    """Worth a warning where others than this machine's own users can reach it, if only by way of a proxy."""
    foreign = [name for name in settings.own_names if not is_loopback(name)]
    say = log.info if is_loopback(settings.reachable_at) and not foreign else log.warning
    known_as = {"known_as": foreign} if foreign else {}
    say("open: there are no keys, whoever reaches the service may do everything", address=settings.reachable_at, **known_as)


def _work_beside_requests(context: Context, settings: Settings) -> list[Repeated]:
    outbox = Outbox(context, RetrySchedule(settings.webhook_retry_seconds))
    return [
        Repeated("refresh of the known callers", context.callers.round, REFRESH_SECONDS),
        Repeated("count of requests by key", show_requests_by_key, KEYS_COUNTED_SECONDS),
        Repeated("removal of old sessions", context.callers.sessions.sweep, SWEEP_SECONDS),
        Repeated("measurement of the vital signs", VitalSigns(context.database).measure, EVERY_SECONDS),
        Repeated("sweep", Sweeper(context, Pace(settings.webhook_settle_seconds)).round, settings.sweep_seconds),
        Repeated("removal of deleted experiments", Deleter(context).remove_all, settings.sweep_seconds),
        Repeated("webhooks", outbox.round, settings.sweep_seconds, at_the_end=outbox.close),
    ]


def _identity_provider(settings: ProviderSettings | None) -> IdentityProvider | None:
    """Who vouches for accounts, if anybody does: an extra of the package, which is there if it is asked for."""
    if settings is None:
        return None
    from service.web.access.identity_provider import IdentityProvider  # noqa: PLC0415 - not there without the extra

    return IdentityProvider(settings)


def _request_spans(settings: Settings) -> RequestSpans | None:
    """Where traces go, if they go anywhere: an extra of the package, too."""
    if not settings.otlp_endpoint:
        return None
    from service.web.request_spans import RequestSpans  # noqa: PLC0415 - not there without the extra

    return RequestSpans(settings.otlp_endpoint, settings.traced_share)


def _writer(database: Database, settings: Settings) -> Writer:
    """The writer; the one that is watched takes a little longer, and is there where somebody looks."""
    if not settings.otlp_endpoint:
        return Writer(database, queue_limit=settings.queue_limit)
    from service.engine.traced_writer import TracedWriter  # noqa: PLC0415 - needed nowhere else

    return TracedWriter(database, queue_limit=settings.queue_limit)


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
        drain_seconds=settings.drain_seconds,
    )


def _spare_the_collector() -> None:
    """What has been imported stays for good, and requests leave no cycles: looking for them less often costs nothing.

    Nor is it looked through before: some 1,600 objects of it are garbage, and finding them takes a tenth of a second.
    """
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
