"""Keys of the API: who may do what."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Request, Response

from service.application.commands import manage_keys
from service.application.commands.manage_keys import NewKey, WantedKey
from service.application.reads import api_key_list
from service.domain.api_keys import ApiKey
from service.engine.clock import microseconds_of, now_microseconds
from service.web.api import views
from service.web.api.api_key_schemas import KeyIn, KeyOut, KeyPage, NewKeyOut, RotateIn
from service.web.api.body import StrictRoute
from service.web.api.listings import Listing
from service.web.api.parameters import (
    ApiKeyId,
    CallerOf,
    ContextOf,
    IdempotencyKey,
    PageSize,
    PageToken,
    json_response,
    once,
    rendered_response,
)
from service.web.problems import documented
from service.web.response_pieces import sent_in_pieces

router = APIRouter(prefix="/v1/keys", tags=["keys"], route_class=StrictRoute)
_UNREADABLE = (400, 413, 415, 422)
_DEFAULT_GRACE = RotateIn()


def key_view(key: ApiKey) -> dict[str, Any]:
    """A key as callers see it."""
    times = {name: getattr(key, name) for name in ("created_at", "expires_at", "revoked_at", "last_used_at")}
    return {
        "id": key.id,
        "kind": key.kind,
        "label": key.label,
        "prefix": key.prefix,
        "scopes": sorted(key.scopes),
        "experiments": key.experiments,
        "origins": key.origins,
        **{name: None if at is None else views.time_text(at) for name, at in times.items()},
        "created_by": key.created_by,
        "successor": key.successor,
        "status": key.status_at(now_microseconds()),
    }


def _encode_new(made: NewKey) -> bytes:
    return views.encode(key_view(made.key) | {"secret": made.secret})


@router.post("", status_code=201, response_model=NewKeyOut, responses=documented(*_UNREADABLE, 503))
async def create_key(
    request: Request, context: ContextOf, caller: CallerOf, idempotency: IdempotencyKey, body: KeyIn
) -> Response:
    """A new key. Its secret is in this answer and nowhere else: sent again, the same request is answered without it."""
    wanted = WantedKey(
        body.label,
        frozenset(body.scopes),
        None if body.experiments is None else tuple(body.experiments),
        None if body.expires_at is None else microseconds_of(body.expires_at),
        body.kind,
        None if body.origins is None else tuple(body.origins),
    )
    answered = once(request, "keys", idempotency, creates=True, render=_encode_new)
    made = await manage_keys.create(context.database, caller, wanted, answered)
    await context.callers.renew()
    return rendered_response(made)


@router.get("", response_model=KeyPage, responses=documented(422, 503))
async def list_keys(context: ContextOf, before: PageToken, page_size: PageSize = 20) -> Response:
    """All keys, newest first, those included that are not good any more."""
    found = await api_key_list.page_of_keys(context, before, page_size + 1)
    listing: Listing[tuple[int, ApiKey]] = Listing("keys", lambda entry: key_view(entry[1]), lambda entry: entry[0])
    return sent_in_pieces(listing.page(found, page_size))


@router.get("/{id}", response_model=KeyOut, responses=documented(404, 503))
async def get_key(context: ContextOf, id: ApiKeyId) -> Response:  # noqa: A002 - the contract's name
    """One key."""
    return json_response(key_view(await api_key_list.key(context, id)))


@router.delete("/{id}", status_code=204, responses=documented(404, 503))
async def revoke_key(context: ContextOf, caller: CallerOf, id: ApiKeyId) -> Response:  # noqa: A002 - the contract's name
    """Revoke a key. Within two seconds no worker takes it any more."""
    await manage_keys.revoke(context.database, caller, id)
    await context.callers.renew()
    return Response(status_code=204)


@router.post("/{id}/rotate", status_code=201, response_model=NewKeyOut, responses=documented(*_UNREADABLE, 404, 409, 503))
async def rotate_key(
    request: Request,
    context: ContextOf,
    caller: CallerOf,
    id: ApiKeyId,  # noqa: A002 - the contract's name
    *,
    idempotency: IdempotencyKey,
    body: Annotated[RotateIn, Body()] = _DEFAULT_GRACE,
) -> Response:
    """A successor that may do the same, with its secret; the old key is good for a grace period and no longer."""
    answered = once(request, f"rotate {id}", idempotency, creates=True, render=_encode_new)
    made = await manage_keys.rotate(context.database, caller, id, body.grace_seconds, answered)
    await context.callers.renew()
    return rendered_response(made)
