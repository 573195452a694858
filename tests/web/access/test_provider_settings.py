"""The settings of an identity provider: what is read from them, and what is refused before the service starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from service.settings import Settings

_WHOLE: dict[str, Any] = {  # all of them text
    "public_url": "https://bestarm.example.com",
    "oidc_issuer": "https://accounts.example.com",
    "oidc_client_id": "bestarm",
    "oidc_scopes": "admins=admin, cn=a=read,analysts=read ,analysts=assign",
}


def test_what_is_set_is_what_is_used(tmp_path: Path) -> None:
    """Groups with all their scopes, the address to come back to, and the secret from its file."""
    secret = tmp_path / "secret"
    secret.write_text("of the provider\n")
    provider = Settings(**_WHOLE, oidc_client_secret_file=secret).provider()
    assert provider is not None
    assert provider.groups == {"admins": {"admin"}, "cn=a": {"read"}, "analysts": {"read", "assign"}}
    assert provider.redirect_uri == "https://bestarm.example.com/dashboard/session/oidc/callback"
    assert (provider.name, provider.client_secret) == ("accounts.example.com", "of the provider")
    assert Settings().provider() is None
    assert Settings(**_WHOLE, oidc_client_secret="").oidc_client_secret is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"public_url": ""}, "needs BESTARM_PUBLIC_URL"),
        ({"oidc_client_id": ""}, "needs BESTARM_OIDC_CLIENT_ID"),
        ({"oidc_scopes": ""}, "needs BESTARM_OIDC_SCOPES"),
        ({"oidc_scopes": "admins"}, "pairs of a group and a scope"),
        ({"oidc_scopes": "admins=root"}, "pairs of a group and a scope"),
        ({"oidc_issuer": "http://accounts.example.com"}, "begins with https"),
        ({"oidc_client_secret_file": "/nowhere"}, "cannot be read"),
        ({"public_url": "https://bestarm.example.com/path"}, "pattern"),
    ],
)
def test_what_would_not_work_is_said_at_once(change: dict[str, str], words: str) -> None:
    """In a sentence that names the variable."""
    with pytest.raises(ValidationError, match=words):
        Settings(**(_WHOLE | change))


def test_the_extra_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """And named where it is missing."""
    monkeypatch.setattr("service.sign_in_settings.find_spec", lambda _: None)
    with pytest.raises(ValidationError, match="pip install 'bestarm\\[oidc\\]'"):
        Settings(**_WHOLE)


def test_another_mapping_is_another_ground() -> None:
    """So that sessions end with the settings that they came by."""
    grounds = {
        Settings(**(_WHOLE | change)).provider_ground() for change in ({}, {"oidc_scopes": "a=read"}, {"oidc_client_id": "b"})
    }
    assert len(grounds) == 3
