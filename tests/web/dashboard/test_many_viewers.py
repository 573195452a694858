"""Many viewers of one experiment: one look, one rendering, the newest state for everyone, and a process that can still stop."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import httpx
import pytest

from testing.server import Server
from tests.web.dashboard.traffic import create, visit

Result = TypeVar("Result")
# So close that nothing is found meanwhile, which would be one more change, at a moment of its own.
WORTH = {"control": 0.4, "variant": 0.5}


def run(study: Coroutine[Any, Any, Result]) -> Result:
    """Run it in a thread, because the browser's event loop holds this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, study).result()


async def _watch(url: str, key: str, until: Callable[[int], bool]) -> list[tuple[float, int]]:
    """(time, version) of every event of one stream, until a version that satisfies."""
    seen: list[tuple[float, int]] = []
    client = httpx.AsyncClient(base_url=url, timeout=30)
    async with client, asyncio.timeout(60), client.stream("GET", f"/v1/experiments/{key}/stream") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        async for line in answer.aiter_lines():
            if line.startswith("id: "):
                seen.append((time.monotonic(), int(line[4:])))
            elif line.startswith("data: "):
                assert json.loads(line[6:])["version"] == seen[-1][1]
                if until(seen[-1][1]):
                    break
    return seen


@pytest.mark.serial
def test_every_viewer_sees_the_newest_state(dashboard: Server, http: httpx.Client, key: str) -> None:
    """Streams on a changing experiment: versions rise, at most two a second, and every viewer sees the last one soon."""
    create(http, key)
    last = {"version": 10**9, "at": 0.0}

    async def study() -> list[list[tuple[float, int]]]:
        viewers = [asyncio.create_task(_watch(dashboard.url, key, lambda version: version >= last["version"])) for _ in range(40)]
        for turn in range(16):
            await asyncio.to_thread(visit, http, key, WORTH, 10, turn)
            await asyncio.sleep(0.1)
        final = await asyncio.to_thread(http.post, f"/v1/experiments/{key}/pause")
        last.update(version=final.json()["version"], at=time.monotonic())
        return await asyncio.gather(*viewers)

    for events in run(study()):
        versions = [version for _, version in events]
        assert versions == sorted(set(versions))
        assert versions[-1] == last["version"]
        assert events[-1][0] - last["at"] < 4, "the benchmark holds it to two seconds; here others use the machine, too"
        # Four more than two a second, because a busy machine hands some of them over late and together.
        assert len(events) <= 4 + 2 * (events[-1][0] - events[0][0]), "more than two a second"


def test_a_reconnect_gets_the_newest_state_at_once(dashboard: Server, http: httpx.Client, key: str) -> None:
    """Whatever a viewer saw last, the first event is the present."""
    create(http, key)
    visit(http, key, WORTH)
    now = http.get(f"/v1/experiments/{key}").json()["version"]
    assert [version for _, version in run(_watch(dashboard.url, key, lambda _: True))] == [now]
    assert http.get("/v1/experiments/nobody/stream").status_code == 404


@pytest.mark.parametrize("chart", ["means", "traffic", "certainty"])
def test_pictures_have_etags(http: httpx.Client, key: str, chart: str) -> None:
    """Each picture comes in two themes and sizes, with an ETag that saves drawing it again."""
    create(http, key)
    where = f"/v1/experiments/{key}/charts/{chart}.svg"
    empty = http.get(where)
    assert (empty.status_code, empty.headers["content-type"]) == (200, "image/svg+xml")
    visit(http, key, WORTH)
    version = http.get(f"/v1/experiments/{key}").json()["version"]
    drawn = http.get(where, params={"version": version})
    assert drawn.content != empty.content
    again = http.get(where, headers={"If-None-Match": drawn.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    dark = http.get(where, params={"theme": "dark", "size": "small"})
    assert dark.content != drawn.content
    assert http.get(where, params={"theme": "pink"}).status_code == 422
    assert http.get("/v1/experiments/nobody/charts/means.svg").status_code == 404


def test_a_reward_shows_as_soon_as_it_was_told(http: httpx.Client, key: str) -> None:
    """The shared look is never older than the request: what was acknowledged is seen, 200 or 304."""
    create(http, key)
    etag = ""
    for turn in range(30):
        assignment = http.post(f"/v1/experiments/{key}/assignments", json={}).json()["id"]
        http.post(f"/v1/experiments/{key}/assignments/{assignment}/reward", json={"reward": 1})
        look = http.get(f"/v1/experiments/{key}/recommendation", headers={"If-None-Match": etag})
        assert (look.status_code, look.json()["observations"]) == (200, turn + 1)
        etag = look.headers["etag"]
        assert http.get(f"/v1/experiments/{key}/recommendation", headers={"If-None-Match": etag}).status_code == 304
