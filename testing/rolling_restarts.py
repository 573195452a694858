"""Two services behind a proxy, stopped and started one after the other while clients ask."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from testing.asking_clients import AskingClients
from testing.json_client import JsonClient, arms
from testing.reverse_proxy import SITE, ProxyKind, ReverseProxy
from testing.server import Server

# Longer than the proxies keep an idle connection, as their page says.
DRAIN_SECONDS = "5"
# A proxy that found a service closed looks again after a second or two; until then it has only the other one.
_SETTLING_SECONDS = 3
_BETWEEN = 100
"""Answers between one step and the next."""


@dataclass(frozen=True, slots=True)
class RestartOutcome:
    """What became of the requests meanwhile."""

    answered: int
    refused: list[int]
    broken: list[str]
    lost: int
    """Answered, and not stored."""
    exit_codes: list[int]


def restart_under_load(
    kind: ProxyKind, folder: Path, database_url: str, *, restarts: int, workers: int = 1, clients: int = 8
) -> RestartOutcome:
    """So many restarts by SIGTERM, of one service and the other in turn."""

    def started(port: int | None = None) -> Server:
        named = Server(database_url, workers=workers, port=port, BESTARM_DRAIN_SECONDS=DRAIN_SECONDS, BESTARM_ALLOWED_HOSTS=SITE)
        return running.enter_context(named)

    with ExitStack() as running:
        services = [started(), started()]
        proxy = running.enter_context(ReverseProxy(kind, [one.port for one in services], folder / kind))
        wire = running.enter_context(JsonClient(services[0].url))
        wire.create("restarted", arms=arms(3))
        exit_codes: list[int] = []
        with AskingClients(proxy.url, "restarted", trusting=proxy.trusting, clients=clients) as asking:
            for number in range(restarts):
                asking.wait_for(len(asking.answered) + _BETWEEN)
                stopped = services[number % 2]
                exit_codes.append(stopped.stop())
                asking.wait_for(len(asking.answered) + _BETWEEN)
                services[number % 2] = started(stopped.port)
                time.sleep(_SETTLING_SECONDS)
            asking.wait_for(len(asking.answered) + _BETWEEN)
        with JsonClient(services[0].url) as reading:
            stored = asking.stored(reading)
    return RestartOutcome(len(asking.answered), asking.refused, asking.broken, len(set(asking.answered) - stored), exit_codes)
