"""Webhooks: create, change, give another secret, test, send again, delete. What was done is in the log of the instance."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from service.application.commands.secret_answers import answered, first_answer
from service.application.webhooks.endpoint_url import read_url
from service.application.webhooks.messages import message_of_test
from service.domain.limits import MESSAGE_ID_PATTERN, MOST_WEBHOOKS
from service.domain.webhooks import (
    Delivery,
    SigningSecret,
    Template,
    Webhook,
    WebhookEvent,
    new_message_id,
    new_signing_secret,
    new_webhook_id,
)
from service.engine.clock import now_microseconds
from service.errors import Conflict, DeliveryNotFound
from service.storage.database_time import database_now
from service.storage.queries import stored_deliveries, stored_instance_log, stored_webhooks

if TYPE_CHECKING:
    from service.application.commands.idempotency import Once, Rendered
    from service.application.context import Context
    from service.domain import Json, LogKind
    from service.domain.callers import Caller
    from service.storage.database import Connection

_SECOND = 1_000_000
_MESSAGE_ID = re.compile(MESSAGE_ID_PATTERN)


@dataclass(frozen=True, slots=True)
class WantedWebhook:
    """What a new webhook is to be."""

    url: str
    events: tuple[WebhookEvent, ...]
    experiments: tuple[str, ...] | None
    template: Template


@dataclass(frozen=True, slots=True)
class NewSecret:
    """A webhook, and its new secret; None where the same request is answered again."""

    webhook: Webhook
    secret: str | None


async def create(context: Context, caller: Caller, wanted: WantedWebhook, once: Once[NewSecret]) -> Rendered:
    """A new webhook, with its secret. It is told of what happens from now on."""
    caller.require("admin")
    url = str(read_url(wanted.url, context.sender.networks))
    now = now_microseconds()
    async with context.database.writing() as connection:
        await stored_webhooks.hold(connection)
        repeated = await first_answer(connection, once)
        if repeated is not None:
            return repeated
        if await stored_webhooks.number_of_webhooks(connection) >= MOST_WEBHOOKS:
            raise Conflict(f"There are {MOST_WEBHOOKS} webhooks already, which is the most.")
        secret = SigningSecret(new_signing_secret())
        webhook = Webhook(
            id=new_webhook_id(),
            url=url,
            events=wanted.events,
            experiments=wanted.experiments,
            template=wanted.template,
            secrets=(secret,),
            created_at=now,
            created_by=caller.id,
        )
        await stored_webhooks.insert_webhook(connection, webhook)
        await _log(connection, "webhook_created", webhook, caller)
        rendered = await answered(connection, once, NewSecret(webhook, secret.secret), NewSecret(webhook, None), now)
    await context.webhooks.refresh()
    return rendered


async def change(context: Context, caller: Caller, webhook_id: str, fields: dict[str, Any]) -> Webhook:
    """The webhook afterwards. Enabled again, it gets what has waited, from the first message on."""
    caller.require("admin")
    if "url" in fields:
        fields = fields | {"url": str(read_url(fields["url"], context.sender.networks))}
    async with context.database.writing() as connection:
        await stored_webhooks.hold(connection)
        webhook = await stored_webhooks.existing_webhook(connection, webhook_id, locked=True)
        changed = replace(webhook, **fields)
        if changed.status != webhook.status:
            changed = replace(changed, notice=None)
        if changed != webhook:
            await stored_webhooks.replace_webhook(connection, changed)
            await _log(connection, "webhook_changed", changed, caller, changed=", ".join(sorted(fields)))
        if changed.enabled and not webhook.enabled:
            await stored_deliveries.try_all_again(connection, webhook_id, await database_now(connection))
    await context.webhooks.refresh()
    return changed


async def rotate(context: Context, caller: Caller, webhook_id: str, grace_seconds: int, once: Once[NewSecret]) -> Rendered:
    """Another secret; the one before signs beside it for a grace period and no longer."""
    caller.require("admin")
    now = now_microseconds()
    async with context.database.writing() as connection:
        await stored_webhooks.hold(connection)
        repeated = await first_answer(connection, once)
        if repeated is not None:
            return repeated
        present = await stored_webhooks.existing_webhook(connection, webhook_id, locked=True)
        webhook = present.with_new_secret(now, grace_seconds * _SECOND)
        await stored_webhooks.replace_webhook(connection, webhook)
        await _log(connection, "webhook_rotated", webhook, caller)
        made = NewSecret(webhook, webhook.secrets[0].secret)
        return await answered(connection, once, made, NewSecret(webhook, None), now)


async def delete(context: Context, caller: Caller, webhook_id: str) -> None:
    """It is gone, with all that it was still to be told."""
    caller.require("admin")
    async with context.database.writing() as connection:
        await stored_webhooks.hold(connection)
        webhook = await stored_webhooks.existing_webhook(connection, webhook_id, locked=True)
        await stored_webhooks.delete_webhook(connection, webhook_id)
        await _log(connection, "webhook_deleted", webhook, caller)
    await context.webhooks.refresh()


async def test(context: Context, caller: Caller, webhook_id: str) -> Delivery:
    """Send a message of no experiment now, once, and say what became of it; to a disabled webhook, too."""
    caller.require("admin")
    async with context.webhook_tests:
        async with context.database.reading() as connection:
            webhook = await stored_webhooks.existing_webhook(connection, webhook_id)
        now = now_microseconds()
        message = message_of_test(webhook.id, now)
        delivery = Delivery(0, new_message_id(), webhook.id, "webhook.test", None, None, message, "failed", now)
        result = await context.sender.send_message(webhook, delivery)
        done = replace(
            delivery,
            status="delivered" if result.delivered else "failed",
            attempts=1,
            attempted_at=now,
            delivered_at=now_microseconds() if result.delivered else None,
            response_status=result.response_status,
            error=result.error,
        )
        async with context.database.writing() as connection:
            await stored_webhooks.existing_webhook(connection, webhook_id, locked=True)
            await stored_deliveries.insert_delivery(connection, done, None)
    return done


async def resend(context: Context, caller: Caller, webhook_id: str, delivery_id: str) -> Delivery:
    """The message waits as if it had never been tried, before all later ones of its experiment."""
    caller.require("admin")
    if not _MESSAGE_ID.fullmatch(delivery_id):
        raise DeliveryNotFound(webhook_id, delivery_id)
    async with context.database.writing() as connection:
        webhook = await stored_webhooks.existing_webhook(connection, webhook_id, locked=True)
        delivery = await stored_deliveries.delivery_by_id(connection, webhook_id, delivery_id)
        if delivery is None:
            raise DeliveryNotFound(webhook_id, delivery_id)
        if delivery.event == "webhook.test":
            raise Conflict("A test is sent once: send another one.")
        if not webhook.enabled:
            raise Conflict(f"Webhook {webhook_id} is disabled: enable it, and all that waits is sent.")
        await stored_deliveries.send_again(connection, delivery_id, await database_now(connection))
        return replace(delivery, status="waiting", attempts=0, next_attempt_at=None, delivered_at=None)


async def _log(connection: Connection, kind: LogKind, webhook: Webhook, caller: Caller, **more: Json) -> None:
    """With the host alone: the path of an endpoint may be a secret itself."""
    details: dict[str, Json] = {"webhook": webhook.id, "host": urlsplit(webhook.url).hostname, **more}
    await stored_instance_log.append(connection, kind, details, now_microseconds(), caller)
