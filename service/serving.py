"""The service as processes: the sockets it listens on, its workers, and how they stop."""

from __future__ import annotations

import errno
import os
import signal
import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from tempfile import TemporaryDirectory

import structlog
import uvicorn

from service import __version__, log_lines
from service.settings import Settings
from service.storage.database_url import display_url
from service.storage.migrate import head
from service.storage.schema_compatibility import Schema
from service.supervision.supervisor import Supervisor
from service.supervision.worker import Worker
from service.supervision.worker_process import load
from service.web.hosts import AllowedHosts
from service.web.metrics_server import MetricsServer
from service.web.request_metrics import FOLDER as METRICS_FOLDER

log = structlog.get_logger(__name__)
# Requests in flight get this long to finish after Ctrl-C or SIGTERM.
GRACE_SECONDS = 20


def bound_sockets(host: str, port: int) -> list[socket.socket]:
    """A socket for each address of the host, not listening yet. Port 0 becomes a free one, the same for all of them.

    Raises OSError if the port is taken, or the host has no address on this machine.
    """
    name = host.removeprefix("[").removesuffix("]")
    found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    trouble: OSError | None = None
    with ExitStack() as on_failure:
        bound: list[socket.socket] = []
        for family, kind, protocol, _, address in found:
            try:
                one = on_failure.enter_context(socket.socket(family, kind, protocol))
                one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                one.bind((address[0], bound[0].getsockname()[1] if bound else port, *address[2:]))
                bound.append(one)
            except OSError as unusable:
                # `localhost` is also an IPv6 address where there is no IPv6.
                if unusable.errno not in {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT}:
                    raise
                trouble = unusable
        if not bound and trouble is not None:
            raise trouble
        on_failure.pop_all()
    return bound


def address_of(host: str, sockets: Sequence[socket.socket]) -> str:
    """What to open in a browser."""
    port = sockets[0].getsockname()[1]
    return f"http://[{host}]:{port}" if ":" in host and host[0] != "[" else f"http://{host}:{port}"


def run(settings: Settings, schema: Schema, sockets: list[socket.socket], metrics_sockets: Sequence[socket.socket] = ()) -> int:
    """Serve until the first SIGTERM or Ctrl-C; the exit code, 0 after such a stop."""
    log_lines.configure(settings.log_level)
    config = uvicorn.Config(
        "service.main:create_server",
        factory=True,
        host=settings.host,
        port=settings.port,
        workers=settings.workers,
        log_level=settings.log_level,
        log_config=log_lines.standard_library(settings.log_level),
        http=_protocol(settings),
        server_header=False,
        access_log=False,
        ws="none",
        proxy_headers=False,  # nothing here looks at the client's address
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    log.info(
        "serving",
        version=__version__,
        address=address_of(settings.host, sockets),
        database=display_url(settings.database_url),
        workers=settings.workers,
        migration=head(),
        database_migration=schema.revision,
        database_for_releases_from=schema.compatible_with,
    )
    hosts = AllowedHosts(settings.reachable_at, settings.allowed_host_names, insecure=settings.insecure)
    with closing(MetricsServer(metrics_sockets, hosts)) as metrics:
        if settings.workers == 1:
            metrics.start()
            code = _run_here(config, sockets)
        else:
            code = _run_workers(config, sockets, metrics, settings.hang_seconds)
    log.info("stopped", exit_code=code)
    return code


def _protocol(settings: Settings) -> str:
    """What connections speak, by its name: a supervisor has no use for it, and the one that makes spans is of an extra."""
    return f"service.web.fast_path.{'traced_protocol:TracedProtocol' if settings.otlp_endpoint else 'protocol:FastPathProtocol'}"


def _run_here(config: uvicorn.Config, sockets: list[socket.socket]) -> int:
    """One worker is this process itself."""
    server = uvicorn.Server(config)

    def stop(*_: object) -> None:
        """Once stopped, uvicorn sends itself the signal again, to die of it: there is nothing left to do."""
        if not server.started:
            raise SystemExit(0)

    signal.signal(signal.SIGTERM, stop)
    with suppress(KeyboardInterrupt):
        load(config)
        server.run(sockets)
    return 0


def _run_workers(config: uvicorn.Config, sockets: list[socket.socket], metrics: MetricsServer, hang_seconds: float) -> int:
    """Several are processes below this one, which replaces those that die or hang, and shows the sum of their numbers."""
    with _shared_metrics():
        metrics.start()
        return Supervisor(lambda: Worker(config, sockets, hang_seconds), config.workers, lambda: _let_go(sockets)).run()


def _let_go(sockets: list[socket.socket]) -> None:
    """Held here while the workers stop, they would go on taking connections that nobody serves."""
    for one in sockets:
        one.close()


@contextmanager
def _shared_metrics() -> Iterator[None]:
    """Several workers add up their metrics in a folder; it must be known before the workers import anything."""
    with TemporaryDirectory(prefix="bestarm-metrics-", ignore_cleanup_errors=True) as folder:
        os.environ[METRICS_FOLDER] = folder
        yield
