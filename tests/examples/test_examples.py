"""The examples end well against the real service, and the experiments behind them have what they say."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from bestarm import AsyncClient
from examples import assignments_to_pandas
from examples.assignments_to_pandas import assignments, by_arm
from examples.prompts import VARIANTS
from examples.shop.app import create_shop
from testing.json_client import JsonClient
from testing.server import Server, free_port

_ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wire(sqlite_server: Server) -> Iterator[JsonClient]:
    """A JSON client of the service; one engine is enough for programs that know nothing of it."""
    with JsonClient(sqlite_server.url) as connection:
        yield connection


def _run(server: Server, key: str, *command: str) -> str:
    """What an example prints; it prints no warning and no error."""
    environment = os.environ | {"BESTARM_URL": server.url, "BESTARM_EXPERIMENT": key}
    environment.pop("BESTARM_KEY", None)
    done = subprocess.run(command, cwd=_ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


def _look(wire: JsonClient, key: str) -> dict[str, Any]:
    seen: dict[str, Any] = wire.send("GET", f"/v1/experiments/{key}/recommendation").body
    return seen


def test_the_shop(sqlite_server: Server, wire: JsonClient, key: str) -> None:
    """Two looks of a visitor are one draw, each order is told once, and who has not ordered is waited for."""
    said, summary = _run(sqlite_server, key, sys.executable, "-m", "examples.shop").splitlines()
    orders = int(re.findall(r"(\d+) orders", said)[0])
    listed = wire.send("GET", f"/v1/experiments/{key}/assignments?page_size=100").body["assignments"]
    assert len({one["unit"] for one in listed}) == len(listed) == 60
    assert [one["reward"] for one in listed if one["status"] == "rewarded"] == [1] * orders
    assert {one["status"] for one in listed} == {"rewarded", "pending"}
    assert f"60 visitors, {orders} orders, {orders} told, {60 - orders} may still order" in said
    seen = _look(wire, key)
    assert (seen["arm"], summary) == ("green", seen["summary"])


def test_the_shop_without_the_service() -> None:
    """The page shows the fallback and takes orders; nothing is told of a visitor who saw it, and nothing waits to be."""
    client = AsyncClient(f"http://127.0.0.1:{free_port()}")
    shop = create_shop(client)

    async def visit() -> tuple[str, dict[str, bool]]:
        transport = httpx.ASGITransport(shop)
        async with shop.router.lifespan_context(shop), httpx.AsyncClient(transport=transport, base_url="http://shop") as browser:
            page = await browser.get("/checkout", params={"visitor": "visitor-1"})
            return page.text, (await browser.post("/orders", params={"visitor": "visitor-1"})).json()

    page, order = asyncio.run(visit())
    assert "#888" in page
    assert order == {"ordered": True, "told": False}
    assert (client.counts.fallbacks, client.counts.rewards_waiting) == (1, 0)


def test_prompts(sqlite_server: Server, wire: JsonClient, key: str) -> None:
    """Quality minus cost prefers the small model with the long prompt; the near region is faster; failures are no evidence."""
    said = _run(sqlite_server, key, sys.executable, "-m", "examples.prompts").splitlines()
    quality, latency = _look(wire, f"{key}-quality"), _look(wire, f"{key}-latency")
    assert (quality["arm"], latency["arm"]) == ("small-steps", "near")
    assert {one["arm"] for one in quality["arms"] if one["observations"]} == set(VARIANTS)
    assert quality["draws"] == latency["draws"] == latency["observations"] < 160
    assert 0 < quality["pending"] < 40
    assert quality["draws"] == quality["observations"] + quality["pending"]
    voided = [wire.send("GET", f"/v1/experiments/{key}-{of}/assignments?status=voided").body for of in ("quality", "latency")]
    assert [len(page["assignments"]) for page in voided] == [160 - quality["draws"]] * 2
    assert [line.partition(",")[0] for line in said] == [f"{key}-quality: small-steps", f"{key}-latency: near"]


def test_node(sqlite_server: Server, wire: JsonClient, key: str) -> None:
    """Through the official provider: every visitor one draw and one reward, the default for a flag that is not there."""
    said = json.loads(_run(sqlite_server, key, "node", "examples/node_ofrep/shop.mjs"))
    assert said == {"experiment": key, "shown": 40, "unknown": ["#888", "FLAG_NOT_FOUND"]}
    seen = _look(wire, key)
    assert (seen["arm"], seen["draws"], seen["observations"]) == ("green", 40, 40)


@contextmanager
def _breaking(answers: list[bytes]) -> Iterator[tuple[int, list[str]]]:
    """A service that sends these parts of an answer, each to one request, and resets the connection: its port, and who asked."""
    asked: list[str] = []

    def serve() -> None:
        for answer in answers:
            connection, _ = listening.accept()
            with connection:
                asked.append(connection.recv(65_536).decode().partition("\r\n")[0])
                connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + answer)
                if not answer.endswith(b"0\r\n\r\n"):
                    time.sleep(0.1)  # else what was sent is discarded with the rest
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        listening.close()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve)
        thread.start()
        yield listening.getsockname()[1], asked
        thread.join()


def test_assignments_that_are_cut_off_are_gone_on_with(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reset connection is tried again, after the last whole row; one that never comes back is given up."""
    monkeypatch.setattr(assignments_to_pandas, "_PAUSE_SECONDS", 0)
    parts = [b'11\r\n{"sequence":11}\n{\r\n', b"", b'10\r\n{"sequence":12}\n\r\n0\r\n\r\n']
    with _breaking(parts) as (port, asked), httpx.Client(base_url=f"http://127.0.0.1:{port}") as client:
        assert assignments_to_pandas.rows(client, "e") == [{"sequence": 11}, {"sequence": 12}]
        assert ["after=11" in line for line in asked] == [False, True, True]
        with pytest.raises(httpx.ConnectError):
            assignments_to_pandas.rows(client, "e")


def test_assignments_in_pandas(sqlite_server: Server, wire: JsonClient, key: str) -> None:
    """Each draw once and in order; the table is what the service counts."""
    wire.create(key, arms=[{"key": "grey"}, {"key": "green"}])
    drawn = [wire.ask(key, f"user-{number}") for number in range(25)]
    for number, one in enumerate(drawn[:20]):
        wire.tell(key, one["id"], number % 2)
    with sqlite_server.client() as api:
        frame, of_grey = assignments(api, key), assignments(api, key, arm="grey")
    assert list(frame.index) == list(range(1, 26))
    assert list(frame["id"]) == [one["id"] for one in drawn]
    assert list(of_grey["id"]) == [one["id"] for one in drawn if one["arm"] == "grey"]
    assert (frame["status"] == "pending").sum() == 5
    assert str(frame["rewarded_at"].dtype).startswith("datetime64")
    counted = by_arm(frame)
    for one in _look(wire, key)["arms"]:
        row = counted.loc[one["arm"]]
        assert (row["draws"], row["rewards"], row["mean"]) == (one["draws"], one["observations"], pytest.approx(one["mean"]))
        assert row["delay"] >= 0
    printed = _run(sqlite_server, key, sys.executable, "-m", "examples.assignments_to_pandas", key)
    assert printed == counted.to_string() + "\n"
