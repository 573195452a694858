"""Settings of signing in: the public address, and the identity provider whose accounts may sign in."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from pydantic import Field, SecretStr, model_validator
from pydantic_settings import BaseSettings

from service.secret_files import secret_in
from service.web.access.provider_settings import ProviderSettings, groups_in, is_safe_address

_CALLBACK = "/dashboard/session/oidc/callback"


class SignInSettings(BaseSettings):
    """A part of the settings of the service."""

    public_url: str = Field(
        "",
        pattern=r"^$|^https?://[A-Za-z0-9._:\[\]-]+$",
        description="Where people open the dashboard, as `https://bestarm.example.com`: whether its cookies need TLS.",
    )
    oidc_issuer: str = Field("", description="The identity provider whose accounts may sign in (OpenID Connect).")
    oidc_client_id: str = Field("", description="What this service is called there.")
    oidc_client_secret: SecretStr | None = Field(None, description="Its secret there, if it has one.")
    oidc_client_secret_file: Path | None = Field(None, description="The file that holds it instead.")
    oidc_scopes: str = Field("", description="What members of groups may do: `admins=admin,analysts=read`.")
    oidc_groups_claim: str = Field("groups", description="The claim that names the groups of an account.")
    oidc_request: str = Field("openid email profile", description="The scopes of OpenID Connect that are asked for.")

    @model_validator(mode="after")
    def _check_provider(self) -> SignInSettings:
        if self.oidc_client_secret is not None and not self.oidc_client_secret.get_secret_value():
            self.oidc_client_secret = None  # as compose passes what is not set
        if self.oidc_client_secret_file is not None:
            secret = secret_in(self.oidc_client_secret_file, "BESTARM_OIDC_CLIENT_SECRET_FILE")
            self.oidc_client_secret = SecretStr(secret.strip())
        if self.oidc_issuer:
            self._require_whole_provider()
        return self

    def _require_whole_provider(self) -> None:
        for name in ("oidc_client_id", "oidc_scopes", "public_url"):
            if not getattr(self, name):
                raise ValueError(f"BESTARM_OIDC_ISSUER needs BESTARM_{name.upper()} beside it.")
        groups_in(self.oidc_scopes)
        if not is_safe_address(self.oidc_issuer):
            raise ValueError("BESTARM_OIDC_ISSUER begins with https://.")
        if find_spec("joserfc") is None:
            raise ValueError("BESTARM_OIDC_ISSUER needs the extra `oidc`: pip install 'bestarm[oidc]'.")

    def provider(self) -> ProviderSettings | None:
        """The identity provider, if there is one."""
        if not self.oidc_issuer:
            return None
        secret = self.oidc_client_secret
        return ProviderSettings(
            issuer=self.oidc_issuer,
            client_id=self.oidc_client_id,
            client_secret=None if secret is None else secret.get_secret_value(),
            redirect_uri=self.public_url + _CALLBACK,
            requested=self.oidc_request,
            groups_claim=self.oidc_groups_claim,
            groups=groups_in(self.oidc_scopes),
        )

    def provider_ground(self) -> bytes | None:
        """What sessions by the identity provider rest on, if there is one."""
        provider = self.provider()
        return None if provider is None else provider.ground
