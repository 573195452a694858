"""Webhooks: who outside is told of what happens to experiments."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Query, Request, Response

from service.application.commands import manage_webhooks
from service.application.commands.manage_webhooks import NewSecret, WantedWebhook
from service.application.reads import webhook_list
from service.domain.webhooks import Delivery, DeliveryStatus, Waiting, Webhook
from service.engine.clock import now_microseconds, time_text
from service.web.api import views
from service.web.api.body import StrictRoute
from service.web.api.listings import Listing
from service.web.api.parameters import (
    CallerOf,
    ContextOf,
    IdempotencyKey,
    MessageId,
    PageSize,
    PageToken,
    WebhookId,
    json_response,
    once,
    rendered_response,
)
from service.web.api.webhook_schemas import (
    DeliveryOut,
    DeliveryPage,
    NewWebhookOut,
    RotateSecretIn,
    WebhookIn,
    WebhookOut,
    WebhookPage,
    WebhookPatch,
)
from service.web.problems import documented
from service.web.response_pieces import sent_in_pieces

router = APIRouter(prefix="/v1/webhooks", tags=["webhooks"], route_class=StrictRoute)
_UNREADABLE = (400, 413, 415, 422)
_DEFAULT_GRACE = RotateSecretIn()


def webhook_view(webhook: Webhook, waiting: Waiting) -> dict[str, Any]:
    """A webhook as administrators see it."""
    former = [one.expires_at for one in webhook.secrets_at(now_microseconds()) if one.expires_at is not None]
    shown = ("id", "url", "events", "experiments", "template", "status", "notice", "created_by")
    return {
        **{name: getattr(webhook, name) for name in shown},
        "created_at": time_text(webhook.created_at),
        "former_secret_until": time_text(former[0]) if former else None,
        "waiting": waiting.messages,
        "oldest_waiting_at": time_text(waiting.oldest_at),
    }


def delivery_view(delivery: Delivery) -> dict[str, Any]:
    """A message as administrators see it."""
    shown = ("id", "event", "experiment", "sequence", "status", "attempts", "response_status", "error", "message")
    times = ("created_at", "attempted_at", "next_attempt_at", "delivered_at")
    return {
        **{name: getattr(delivery, name) for name in shown},
        **{name: time_text(getattr(delivery, name)) for name in times},
    }


def _encode_new(made: NewSecret) -> bytes:
    return views.encode(webhook_view(made.webhook, Waiting()) | {"secret": made.secret})


@router.post("", status_code=201, response_model=NewWebhookOut, responses=documented(*_UNREADABLE, 409, 503))
async def create_webhook(
    request: Request, context: ContextOf, caller: CallerOf, idempotency: IdempotencyKey, body: WebhookIn
) -> Response:
    """A new webhook. Its secret is in this answer and nowhere else: sent again, the same request is answered without it."""
    experiments = None if body.experiments is None else tuple(body.experiments)
    wanted = WantedWebhook(body.url, tuple(body.events), experiments, body.template)
    answered = once(request, "webhooks", idempotency, creates=True, render=_encode_new)
    return rendered_response(await manage_webhooks.create(context, caller, wanted, answered))


@router.get("", response_model=WebhookPage, responses=documented(422, 503))
async def list_webhooks(context: ContextOf, before: PageToken, page_size: PageSize = 20) -> Response:
    """All webhooks, newest first, with what waits for them."""
    found = await webhook_list.page_of_webhooks(context, before, page_size + 1)
    listing: Listing[webhook_list.ListedWebhook] = Listing(
        "webhooks", lambda one: webhook_view(one.webhook, one.waiting), lambda one: one.number
    )
    return sent_in_pieces(listing.page(found, page_size))


@router.get("/{id}", response_model=WebhookOut, responses=documented(404, 503))
async def get_webhook(context: ContextOf, id: WebhookId) -> Response:  # noqa: A002 - the contract's name
    """One webhook."""
    found = await webhook_list.webhook(context, id)
    return json_response(webhook_view(found.webhook, found.waiting))


@router.patch("/{id}", response_model=WebhookOut, responses=documented(*_UNREADABLE, 404, 503))
async def patch_webhook(
    context: ContextOf,
    caller: CallerOf,
    id: WebhookId,  # noqa: A002 - the contract's name
    body: WebhookPatch,
) -> Response:
    """Change what it is told of, where, and in which form; disable it, or enable it again."""
    given = {name: getattr(body, name) for name in body.model_fields_set}
    fields = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
    await manage_webhooks.change(context, caller, id, fields)
    return await get_webhook(context, id)


@router.delete("/{id}", status_code=204, responses=documented(404, 503))
async def delete_webhook(context: ContextOf, caller: CallerOf, id: WebhookId) -> Response:  # noqa: A002 - the contract's name
    """Delete a webhook, and all that it was still to be told."""
    await manage_webhooks.delete(context, caller, id)
    return Response(status_code=204)


@router.post("/{id}/rotate", status_code=201, response_model=NewWebhookOut, responses=documented(*_UNREADABLE, 404, 503))
async def rotate_secret(
    request: Request,
    context: ContextOf,
    caller: CallerOf,
    id: WebhookId,  # noqa: A002 - the contract's name
    *,
    idempotency: IdempotencyKey,
    body: Annotated[RotateSecretIn, Body()] = _DEFAULT_GRACE,
) -> Response:
    """Another secret; messages are signed with both until the grace period is over."""
    answered = once(request, f"rotate {id}", idempotency, creates=True, render=_encode_new)
    return rendered_response(await manage_webhooks.rotate(context, caller, id, body.grace_seconds, answered))


@router.post("/{id}/test", response_model=DeliveryOut, responses=documented(404, 503))
async def test_webhook(context: ContextOf, caller: CallerOf, id: WebhookId) -> Response:  # noqa: A002 - the contract's name
    """Send a message of type `webhook.test` now, once, and say what became of it."""
    return json_response(delivery_view(await manage_webhooks.test(context, caller, id)))


@router.get("/{id}/deliveries", response_model=DeliveryPage, responses=documented(404, 422, 503))
async def list_deliveries(
    context: ContextOf,
    id: WebhookId,  # noqa: A002 - the contract's name
    before: PageToken,
    status: Annotated[DeliveryStatus | None, Query(description="Only those that wait, were delivered, or failed.")] = None,
    page_size: PageSize = 20,
) -> Response:
    """Messages of the last 30 days, newest first, and what has become of each."""
    found = await webhook_list.page_of_deliveries(context, id, status, before, page_size + 1)
    listing: Listing[Delivery] = Listing("deliveries", delivery_view, lambda one: one.number)
    return sent_in_pieces(listing.page(found.deliveries, page_size, found.go_on_below))


@router.post("/{id}/deliveries/{message}/resend", response_model=DeliveryOut, responses=documented(404, 409, 503))
async def resend_delivery(
    context: ContextOf,
    caller: CallerOf,
    id: WebhookId,  # noqa: A002 - the contract's name
    message: MessageId,
) -> Response:
    """Send a message again, under its old id: at once if it waits for its next attempt, and although it was delivered."""
    return json_response(delivery_view(await manage_webhooks.resend(context, caller, id, message)))
