"""What a webhook is told of, and which of its secrets sign."""

from __future__ import annotations

from service.domain.webhooks import SigningSecret, Webhook, new_signing_secret


def _webhook(experiments: tuple[str, ...] | None = None) -> Webhook:
    return Webhook(
        "wh_1", "https://x.example", ("arm.changed",), experiments, "standard", (SigningSecret("whsec_AAAA"),), 0, None
    )


def test_it_wants_what_it_asked_for() -> None:
    """Events by their names, experiments by keys and patterns."""
    assert _webhook().wants("arm.changed", "anything")
    assert not _webhook().wants("experiment.paused", "anything")
    some = _webhook(("checkout-*", "one"))
    wanted = [some.wants("arm.changed", key) for key in ("checkout-1", "checkout-", "one", "two", "my-checkout-1", "one-2")]
    assert wanted == [True, True, True, False, False, False]


def test_two_secrets_sign_and_never_three() -> None:
    """The new one and the one before, for as long as it was given; at once, if it was given no time."""
    first = _webhook()
    second = first.with_new_secret(1_000, 500)
    third = second.with_new_secret(1_100, 500)
    assert [one.secret for one in second.secrets_at(1_499)] == [second.secrets[0].secret, "whsec_AAAA"]
    assert second.secrets_at(1_500) == [second.secrets[0]]
    assert [one.secret for one in third.secrets_at(1_101)] == [third.secrets[0].secret, second.secrets[0].secret]
    assert len(first.with_new_secret(0, 0).secrets) == 1
    assert new_signing_secret() != new_signing_secret()
