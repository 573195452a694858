"""Webhooks: who outside is told of what happens to experiments, and the messages that tell it."""

from __future__ import annotations

import base64
import secrets
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from service.domain.callers import matches_any
from service.domain.experiment import Json

WebhookEvent: TypeAlias = Literal[
    "recommendation.changed",
    "experiment.separated",
    "experiment.concluded",
    "experiment.paused",
    "arm.changed",
    "drift.noticed",
]
WEBHOOK_EVENTS: Final[tuple[WebhookEvent, ...]] = get_args(WebhookEvent)
MessageType: TypeAlias = WebhookEvent | Literal["webhook.test"]
Template: TypeAlias = Literal["standard", "slack", "teams"]
WebhookStatus: TypeAlias = Literal["enabled", "disabled"]
DeliveryStatus: TypeAlias = Literal["waiting", "delivered", "failed"]
SECRET_PREFIX: Final = "whsec_"  # noqa: S105 - how a secret begins
# As long as the digest that it keys: longer ones are not safer, and the standard asks for at least 24.
_SECRET_BYTES = 32
_ID_BYTES = 10


class SigningSecret(NamedTuple):
    """A secret that signs messages, and until when; the present one has no end."""

    secret: str
    expires_at: int | None = None

    @property
    def key(self) -> bytes:
        """The bytes that its text stands for."""
        return base64.b64decode(self.secret.removeprefix(SECRET_PREFIX))


@dataclass(frozen=True, slots=True)
class Webhook:
    """An endpoint, and what it is told of."""

    id: str
    url: str
    events: tuple[WebhookEvent, ...]
    experiments: tuple[str, ...] | None
    """Keys, or patterns with `*`. None means all."""
    template: Template
    secrets: tuple[SigningSecret, ...]
    """The present one first; the one before it may still sign beside it."""
    created_at: int
    created_by: str | None
    status: WebhookStatus = "enabled"
    notice: str | None = None
    """Why the service disabled it."""

    @property
    def enabled(self) -> bool:
        """Is anything sent to it?"""
        return self.status == "enabled"

    def wants(self, event: WebhookEvent, experiment: str) -> bool:
        """Is it to be told of such an event of this experiment?"""
        return event in self.events and (self.experiments is None or matches_any(self.experiments, experiment))

    def secrets_at(self, now: int) -> list[SigningSecret]:
        """Those that sign at this time."""
        return [one for one in self.secrets if one.expires_at is None or one.expires_at > now]

    def with_new_secret(self, now: int, grace: int) -> Webhook:
        """With another secret; the present one signs beside it for so long, and no third one does."""
        present = self.secrets[0]
        former = (SigningSecret(present.secret, now + grace),) if grace else ()
        return replace(self, secrets=(SigningSecret(new_signing_secret()), *former))


@dataclass(frozen=True, slots=True)
class Delivery:
    """One message to one endpoint, and what has become of it."""

    number: int
    id: str
    webhook: str
    event: MessageType
    experiment: str | None
    """The key that the experiment had. None for a test."""
    sequence: int | None
    """The number of the event in the experiment's history."""
    message: dict[str, Json]
    """As the standard form has it, whatever the template."""
    status: DeliveryStatus
    created_at: int
    attempts: int = 0
    attempted_at: int | None = None
    next_attempt_at: int | None = None
    delivered_at: int | None = None
    response_status: int | None = None
    error: str | None = None


class Waiting(NamedTuple):
    """What was not delivered to a webhook yet."""

    messages: int = 0
    oldest_at: int | None = None


def new_webhook_id() -> str:
    """How a webhook is named."""
    return f"wh_{secrets.token_hex(_ID_BYTES)}"


def new_message_id() -> str:
    """How a message is named: receivers know by it what they have seen before."""
    return f"msg_{secrets.token_hex(_ID_BYTES)}"


def new_signing_secret() -> str:
    """256 random bits, in the standard's spelling."""
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()
