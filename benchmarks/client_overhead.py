"""What the client costs beside bare httpx: processor time per ask in this process, alternating in one run (`make bench-client`).

    python -m benchmarks.client_overhead [--rounds 15] [--asks 300]

Bare httpx posts the same body with an idempotency key and reads the JSON; the client does that, retries, keeps its deadline and
makes an `Assignment` of the answer.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import httpx

from bestarm import AsyncClient, Client
from testing.server import LIMITS, Server

_RESULTS = Path(__file__).parent / "results/client_overhead.json"
_KEY = "overhead"
_PATH = f"/v1/experiments/{_KEY}/assignments"
Measured = Callable[[int], float]


def _processor_time(doing: Callable[[], object]) -> float:
    begun = time.process_time()
    doing()
    return time.process_time() - begun


def _headers() -> dict[str, str]:
    return {"idempotency-key": uuid.uuid4().hex}


def _blocking(bare: httpx.Client, ours: Client) -> tuple[Measured, Measured]:

    def ask_bare(asks: int) -> None:
        for number in range(asks):
            bare.post(_PATH, json={"unit": f"user-{number}"}, headers=_headers()).raise_for_status().json()

    def ask_ours(asks: int) -> None:
        for number in range(asks):
            ours.assign(_KEY, f"user-{number}")

    return (lambda asks: _processor_time(lambda: ask_bare(asks))), (lambda asks: _processor_time(lambda: ask_ours(asks)))


def _asynchronous(bare: httpx.AsyncClient, ours: AsyncClient, loop: asyncio.Runner) -> tuple[Measured, Measured]:

    async def ask_bare(asks: int) -> None:
        for number in range(asks):
            (await bare.post(_PATH, json={"unit": f"user-{number}"}, headers=_headers())).raise_for_status().json()

    async def ask_ours(asks: int) -> None:
        for number in range(asks):
            await ours.assign(_KEY, f"user-{number}")

    return (
        lambda asks: _processor_time(lambda: loop.run(ask_bare(asks))),
        lambda asks: _processor_time(lambda: loop.run(ask_ours(asks))),
    )


def ratios(bare: Measured, ours: Measured, rounds: int, asks: int) -> list[float]:
    """Ours by bare, round by round; the first one warms up."""
    pairs = [(ours(asks), bare(asks)) for _ in range(rounds + 1)]
    return [mine / theirs for mine, theirs in pairs[1:]]


def _line(found: list[float]) -> dict[str, float]:
    return {"median": round(statistics.median(found), 3), "least": round(min(found), 3), "most": round(max(found), 3)}


def measured(url: str, rounds: int, asks: int) -> dict[str, dict[str, float]]:
    """The ratios of both clients against a service."""
    with httpx.Client(base_url=url, limits=LIMITS) as bare, Client(url) as ours:
        ours.create(_KEY, ["a", "b"])
        blocking = ratios(*_blocking(bare, ours), rounds, asks)
    with asyncio.Runner() as loop:
        bare_one, our_one = httpx.AsyncClient(base_url=url, limits=LIMITS), AsyncClient(url)
        asynchronous = ratios(*_asynchronous(bare_one, our_one, loop), rounds, asks)
        loop.run(bare_one.aclose())
        loop.run(our_one.close())
    return {"blocking": _line(blocking), "asynchronous": _line(asynchronous)}


def main() -> None:
    """Measure, print, and keep it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--asks", type=int, default=300)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, Server(f"sqlite:///{folder}/bestarm.db") as server:
        found = measured(server.url, chosen.rounds, chosen.asks)
    for kind, line in found.items():
        print(f"{kind:13} {line['median']:.2f} times bare httpx's processor time ({line['least']:.2f} to {line['most']:.2f})")
    _RESULTS.write_text(json.dumps({"rounds": chosen.rounds, "asks": chosen.asks, **found}, indent=2) + "\n")


if __name__ == "__main__":
    main()
