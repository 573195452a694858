"""The shop itself: one sticky test, told about conversions when they happen.

- `GET /checkout` asks which button the visitor sees. The experiment is sticky, so a visitor who comes back sees the same one.
- `POST /orders` is the conversion: minutes or days later, in another request, maybe in another process. It tells by unit, so
  the shop has nothing to remember, and it only queues, so no order waits for the service.
- A visitor who never orders is not told about: the experiment's `expiry` counts silence as no sale.
- With the service away the page shows the fallback within its time-out, and nothing is told for a visitor who saw it
  (a cookie says so): it was no draw.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import Cookie, FastAPI, Response

from bestarm import AsyncClient, Conflict

EXPERIMENT = "shop-checkout-button"
FALLBACK = "grey"
_COLOURS = {"grey": "#888", "green": "#080"}
_ASK_SECONDS = 0.2
_COOKIE = "saw_fallback"


async def create_experiment(client: AsyncClient, experiment: str = EXPERIMENT, *, window_seconds: float = 86_400) -> None:
    """Create it at deployment, since the shop must start without the service, too; whoever comes second finds it there."""
    try:
        await client.create(
            experiment,
            [{"key": arm, "value": colour} for arm, colour in _COLOURS.items()],
            sticky=True,
            control=FALLBACK,
            expiry={"after_seconds": window_seconds, "reward": 0},
        )
    except Conflict as conflict:
        if conflict.code != "experiment_exists":
            raise


def create_shop(client: AsyncClient, *, experiment: str = EXPERIMENT, ask_seconds: float = _ASK_SECONDS) -> FastAPI:
    """The shop, with a client that it closes when it ends: queued rewards are sent then."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await client.close()

    shop = FastAPI(lifespan=lifespan)

    @shop.get("/checkout")
    async def checkout(visitor: str) -> Response:
        shown = await client.assign(
            experiment, unit=visitor, fallback=FALLBACK, fallback_value=_COLOURS[FALLBACK], timeout=ask_seconds
        )
        page = Response(f'<button style="background: {shown.value}">Buy</button>', media_type="text/html")
        if shown.is_fallback:
            page.set_cookie(_COOKIE, "yes")
        else:
            page.delete_cookie(_COOKIE)
        return page

    @shop.post("/orders")
    async def order(visitor: str, saw_fallback: Annotated[str | None, Cookie()] = None) -> dict[str, bool]:
        is_told = saw_fallback is None and client.reward_unit_later(experiment, visitor, 1)
        return {"ordered": True, "told": is_told}

    return shop
