"""Visitors for the shop: 60 of them look at the checkout twice, and some order a moment later.

The shop is called inside this process, as its tests would; a real one runs by `uvicorn`.
"""

from __future__ import annotations

import asyncio
import os
import random
import time

import httpx

from bestarm import AsyncClient
from examples.shop.app import create_experiment, create_shop

_VISITORS = 60
_BUYS = {"#888": 0.2, "#080": 0.7}


async def main() -> None:
    """Open the shop, let visitors in, and say what came of it."""
    url, key = os.environ.get("BESTARM_URL", "http://127.0.0.1:8000"), os.environ.get("BESTARM_KEY")
    experiment = os.environ.get("BESTARM_EXPERIMENT", f"shop-{time.time_ns()}")
    async with AsyncClient(url, key=key) as client:
        await create_experiment(client, experiment)
    # The first ask also opens the connection: a simulation may be more patient than a page.
    shop = create_shop(AsyncClient(url, key=key), experiment=experiment, ask_seconds=5)
    transport = httpx.ASGITransport(shop)
    async with shop.router.lifespan_context(shop), httpx.AsyncClient(transport=transport, base_url="http://shop") as browser:
        orders = await _visits(browser, random.Random(1))
    async with AsyncClient(url, key=key) as client:
        seen = await client.recommendation(experiment)
        print(f"{experiment}: {seen.draws} visitors, {orders} orders, {seen.observations} told, {seen.pending} may still order.")
        print(seen.summary)


async def _visits(browser: httpx.AsyncClient, luck: random.Random) -> int:
    """All visitors look, twice; then those who liked what they saw order. How many did."""
    buyers = []
    for number in range(_VISITORS):
        visitor = {"visitor": f"visitor-{number}"}
        first, second = [(await browser.get("/checkout", params=visitor)).text for _ in range(2)]
        if first != second:
            raise RuntimeError("The experiment is sticky: a visitor sees one button.")
        if luck.random() < next(share for colour, share in _BUYS.items() if colour in first):
            buyers.append(visitor)
    for visitor in buyers:
        (await browser.post("/orders", params=visitor)).raise_for_status()
    return len(buyers)


if __name__ == "__main__":
    asyncio.run(main())
