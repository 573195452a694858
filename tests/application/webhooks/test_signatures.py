"""Signatures are what the official verifier of Standard Webhooks accepts, and nothing else is."""

from __future__ import annotations

import time

import pytest
from standardwebhooks.webhooks import Webhook as Verifier
from standardwebhooks.webhooks import WebhookVerificationError

from service.application.webhooks.signatures import signed_headers
from service.domain.webhooks import SigningSecret, new_message_id, new_signing_secret

_BODY = '{"type":"webhook.test","data":{"name":"Käse & <b>"}}'.encode()


def test_the_official_verifier_accepts_each_secret_that_signs() -> None:
    """One, or the two of a rotation; a third is not good."""
    secrets = [SigningSecret(new_signing_secret()) for _ in range(3)]
    for signing in (secrets[:1], secrets[:2]):
        headers = signed_headers(signing, new_message_id(), int(time.time()), _BODY)
        for one in signing:
            assert Verifier(one.secret).verify(_BODY, headers)["type"] == "webhook.test"
        with pytest.raises(WebhookVerificationError):
            Verifier(secrets[2].secret).verify(_BODY, headers)


@pytest.mark.parametrize("spoilt", ["body", "webhook-id", "webhook-timestamp"])
def test_whatever_is_changed_spoils_it(spoilt: str) -> None:
    """The body, the id and the time are signed together."""
    secret = new_signing_secret()
    headers = signed_headers([SigningSecret(secret)], new_message_id(), int(time.time()), _BODY)
    body = _BODY.replace(b"test", b"fest") if spoilt == "body" else _BODY
    others = {"webhook-id": new_message_id(), "webhook-timestamp": str(int(time.time()) - 1)}
    with pytest.raises(WebhookVerificationError):
        Verifier(secret).verify(body, headers | ({} if spoilt == "body" else {spoilt: others[spoilt]}))


def test_a_secret_is_new_and_long() -> None:
    """256 bits, in the spelling of the standard."""
    secret = SigningSecret(new_signing_secret())
    assert secret.secret.startswith("whsec_")
    assert len(secret.key) == 32
    assert secret.secret != new_signing_secret()
