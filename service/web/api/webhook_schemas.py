"""Webhooks, as they come in and go out."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field, JsonValue, model_validator

from service.domain.limits import (
    LONGEST_GRACE_SECONDS,
    LONGEST_WEBHOOK_URL,
    MESSAGE_ID_PATTERN,
    MOST_WEBHOOK_EXPERIMENTS,
    WEBHOOK_ID_PATTERN,
)
from service.domain.webhooks import WEBHOOK_EVENTS, DeliveryStatus, MessageType, Template, WebhookEvent, WebhookStatus
from service.web.api.answer_schemas import Answer
from service.web.api.api_key_schemas import Pattern
from service.web.api.request_schemas import Request


def _once_each(events: list[WebhookEvent]) -> list[WebhookEvent]:
    if len(set(events)) != len(events):
        raise ValueError("An event is named once.")
    return events


WebhookName = Annotated[str, Field(pattern=f"^{WEBHOOK_ID_PATTERN}$")]
Url = Annotated[str, Field(min_length=1, max_length=LONGEST_WEBHOOK_URL, examples=["https://hooks.example.com/bestarm"])]
Events = Annotated[list[WebhookEvent], Field(min_length=1, max_length=len(WEBHOOK_EVENTS)), AfterValidator(_once_each)]
Experiments = Annotated[list[Pattern], Field(min_length=1, max_length=MOST_WEBHOOK_EXPERIMENTS)]
_EXAMPLE: dict[str, JsonValue] = {
    "url": "https://hooks.example.com/bestarm",
    "events": ["experiment.separated", "experiment.concluded"],
    "experiments": ["checkout-*"],
    "template": "standard",
}


class WebhookIn(Request):
    """A new webhook."""

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    url: Url
    events: Events = Field(list(WEBHOOK_EVENTS), description="What it is told of; all of them, if none is named.")
    experiments: Experiments | None = Field(None, description="Keys of experiments, or patterns with `*`; null means all.")
    template: Template = Field("standard", description="The form of the body: the standard's, Slack's or Teams'.")


class WebhookPatch(Request):
    """What of a webhook is to be another."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"events": ["experiment.concluded"], "status": "enabled"}]})

    url: Url | None = None
    events: Events | None = None
    experiments: Experiments | None = Field(None, description="Null means all.")
    template: Template | None = None
    status: WebhookStatus | None = Field(None, description="Enabled again, it gets what has waited.")

    @model_validator(mode="after")
    def _null_only_where_it_means_something(self) -> WebhookPatch:
        for name in self.model_fields_set - {"experiments"}:
            if getattr(self, name) is None:
                raise ValueError(f"`{name}` cannot be null.")
        return self


class RotateSecretIn(Request):
    """How long the old secret signs beside the new one."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"grace_seconds": 86400}]})

    grace_seconds: Annotated[int, Field(ge=0, le=LONGEST_GRACE_SECONDS)] = 86_400


class WebhookOut(Answer):
    """A webhook, without its secret."""

    id: WebhookName
    url: str
    events: list[WebhookEvent]
    experiments: list[str] | None
    template: Template
    status: WebhookStatus
    notice: str | None = Field(description="Why the service disabled it.")
    created_at: datetime
    created_by: str | None = Field(description="The key that made it.")
    former_secret_until: datetime | None = Field(description="How long the secret before this one still signs.")
    waiting: int = Field(description="Messages that wait to be delivered.")
    oldest_waiting_at: datetime | None


class NewWebhookOut(WebhookOut):
    """A webhook, with its secret: this once."""

    secret: str | None = Field(description="Shown once; null when the same request is answered again.")


class WebhookPage(Answer):
    """A page of webhooks, newest first."""

    webhooks: list[WebhookOut]
    next_page_token: str | None


class DeliveryOut(Answer):
    """A message, and what has become of it."""

    id: Annotated[str, Field(pattern=f"^{MESSAGE_ID_PATTERN}$")] = Field(description="The `webhook-id` of every attempt.")
    event: MessageType
    experiment: str | None
    sequence: int | None = Field(description="The number of the event in the experiment's history.")
    status: DeliveryStatus
    attempts: int
    created_at: datetime
    attempted_at: datetime | None
    next_attempt_at: datetime | None
    delivered_at: datetime | None
    response_status: int | None = Field(description="What the endpoint answered to the last attempt.")
    error: str | None = Field(description="Why the last attempt failed.")
    message: dict[str, Any] = Field(description="The body in the standard form.")


class DeliveryPage(Answer):
    """A page of messages, newest first."""

    deliveries: list[DeliveryOut]
    next_page_token: str | None
