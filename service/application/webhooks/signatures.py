"""The signature of a message, as the Standard Webhooks specification has it: HMAC-SHA256 over its id, the time and the body.

Two secrets sign while one takes the other's place: a receiver that knows either finds a signature that fits.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from service.domain.webhooks import SigningSecret


def signed_headers(secrets: Iterable[SigningSecret], message_id: str, seconds: int, body: bytes) -> dict[str, str]:
    """The headers that say which message this is, when it was sent, and that it is ours."""
    signed = b"%b.%d.%b" % (message_id.encode(), seconds, body)
    digests = (hmac.new(one.key, signed, hashlib.sha256).digest() for one in secrets)
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(seconds),
        "webhook-signature": " ".join(f"v1,{base64.b64encode(digest).decode()}" for digest in digests),
    }
