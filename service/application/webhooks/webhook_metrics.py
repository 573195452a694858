"""What operators see of webhooks: messages that were delivered, attempts that failed, and what waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import Counter, Gauge

if TYPE_CHECKING:
    from collections.abc import Collection

    from service.domain.webhooks import Waiting

_ATTEMPTS = Counter("bestarm_webhook_attempts", "Attempts to deliver a message to a webhook: delivered, or failed.", ["outcome"])
_DISABLED = Counter("bestarm_webhook_disabled", "Webhooks that were disabled because nothing could be delivered, or by a 410.")
_WAITING = Gauge("bestarm_webhook_waiting", "Messages that wait to be delivered, of all workers.", multiprocess_mode="livemax")
_OLDEST = Gauge("bestarm_webhook_oldest_seconds", "How long the oldest of them has waited.", multiprocess_mode="livemax")
_DELIVERED, _FAILED = _ATTEMPTS.labels("delivered"), _ATTEMPTS.labels("failed")


def count_attempt(*, delivered: bool) -> None:
    """One attempt is over."""
    (_DELIVERED if delivered else _FAILED).inc()


def count_disabled() -> None:
    """One webhook was given up."""
    _DISABLED.inc()


def show_waiting(waiting: Collection[Waiting], now: int) -> None:
    """What waits for all webhooks, as it is stored."""
    oldest = min((one.oldest_at for one in waiting if one.oldest_at is not None), default=now)
    _WAITING.set(sum(one.messages for one in waiting))
    _OLDEST.set(max(0, now - oldest) / 1_000_000)
