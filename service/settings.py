"""All settings of the service, from BESTARM_* environment variables. Made by main, cli and migrations/env.py only."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import SettingsConfigDict

from service.domain import limits
from service.domain.network_addresses import AllowedNetworks
from service.secret_files import secret_in
from service.sign_in_settings import SignInSettings
from service.storage.database_url import with_password

# Long enough that nobody guesses it, whatever its characters are.
SHORTEST_ADMIN_KEY = 24


def _listed(names: str) -> list[str]:
    """What a setting names with commas in between."""
    return [name.strip() for name in names.split(",") if name.strip()]


class Settings(SignInSettings):
    """Each field is the variable BESTARM_<NAME>; docs/settings.md lists them for people."""

    # What was given is not repeated where a worker, or a migration, ends with an error: some of it is secret.
    model_config = SettingsConfigDict(env_prefix="BESTARM_", extra="ignore", hide_input_in_errors=True)

    database_url: str = Field("sqlite:///bestarm.db", description="`sqlite:///file.db` or `postgresql://user:pw@host/db`.")
    database_password_file: Path | None = Field(None, description="The file that holds the password of a PostgreSQL.")
    host: str = Field("127.0.0.1", description="Address to listen on. Any other than loopback needs a key.")
    published_address: str = Field(
        "", description="Where a container publishes its port: a loopback address there counts as one here."
    )
    port: int = Field(8000, ge=0, le=65535, description="Port to listen on.")
    workers: int = Field(1, ge=1, le=64, description="Worker processes.")
    hang_seconds: float = Field(
        limits.HANG_SECONDS, ge=1, description="How long one of several workers may be silent before it is replaced."
    )
    queue_limit: int = Field(
        limits.MOST_QUEUED,
        ge=1,
        description="Requests that may wait for their transaction in one worker; who finds no place soon gets 503.",
    )
    sweep_seconds: float = Field(1.0, gt=0, le=5, description="How often each worker looks for expired draws.")
    allowed_hosts: str = Field(
        "",
        pattern=r"^$|^ *(\*\.)?[A-Za-z0-9._:\[\]-]+( *, *(\*\.)?[A-Za-z0-9._:\[\]-]+)* *$",
        description="Names to answer to besides loopback's, separated by commas; `*.example.com` is any below it.",
    )
    cors_origins: str = Field(
        "",
        pattern=r"^$|^ *https?://[A-Za-z0-9._:\[\]-]+( *, *https?://[A-Za-z0-9._:\[\]-]+)* *$",
        description="Origins of pages that may evaluate flags and reward units with a public key, separated by commas.",
    )
    admin_key: SecretStr | None = Field(
        None, description="A key that may do everything and is not stored: for the first keys, and for emergencies."
    )
    admin_key_file: Path | None = Field(None, description="The file that holds it instead, as secrets on disk do.")
    insecure: bool = Field(
        default=False, description="Listen beyond loopback without keys: whoever reaches it may do everything."
    )
    keep_alive_seconds: float = Field(limits.KEEP_ALIVE_SECONDS, gt=0, description="How long an idle connection is kept.")
    drain_seconds: float = Field(
        0.0, ge=0, le=limits.MOST_DRAIN_SECONDS, description="How long an open connection may send a last request at a stop."
    )
    head_seconds: float = Field(limits.HEAD_SECONDS, gt=0, description="How long the head of a request may take to arrive.")
    body_seconds: float = Field(
        limits.BODY_SECONDS, gt=0, description="How long a body may take to arrive, and an unread answer to be read on."
    )
    head_bytes: int = Field(limits.MOST_HEAD_BYTES, ge=1024, le=256 * 1024, description="How large the head of a request may be.")
    connection_limit: int = Field(limits.MOST_CONNECTIONS, ge=1, description="Connections that one worker has at a time.")
    rate_limit: float = Field(0.0, ge=0, description="Requests a second that a worker takes of one key; 0 is any number.")
    rate_burst: int = Field(limits.RATE_BURST, ge=1, description="Requests that it takes at once, after a while without any.")
    public_rate_limit: float = Field(limits.PUBLIC_RATE, ge=0, description="The same for a public key, which all visitors share.")
    public_rate_burst: int = Field(limits.RATE_BURST, ge=1, description="The same for a public key.")
    webhook_allowed_networks: str = Field(
        "", description="Networks that webhooks may be in although they are not public, as `10.1.0.0/16`, separated by commas."
    )
    webhook_timeout_seconds: float = Field(
        limits.WEBHOOK_TIMEOUT_SECONDS, gt=0, le=60, description="How long an endpoint may take to answer."
    )
    webhook_retry_seconds: float = Field(
        limits.WEBHOOK_RETRY_SECONDS, gt=0, le=3600, description="The first pause before a message is tried again."
    )
    webhook_settle_seconds: float = Field(
        limits.NOTICE_SETTLE_SECONDS, ge=0, description="How long a change of the leader must be past before the next is told."
    )
    access_log: bool = Field(default=False, description="Log every answered request, as `--access-log`.")
    metrics_port: int = Field(
        0, ge=0, le=65535, description="A port that shows `/metrics` to whoever reaches it, without a key; 0 is none."
    )
    otlp_endpoint: str = Field(
        "", pattern=r"^$|^https?://[^\s/?#@]+[^\s?#@]*$", description="The collector that traces go to, by OTLP over HTTP."
    )
    traced_share: float = Field(1.0, ge=0, le=1, description="The part of all requests whose traces are sent.")
    log_level: str = Field("info", pattern="^(debug|info|warning|error)$", description="How much is logged.")

    @field_validator("webhook_allowed_networks")
    @classmethod
    def _check_networks(cls, names: str) -> str:
        AllowedNetworks.named(_listed(names))
        return names

    @field_validator("otlp_endpoint")
    @classmethod
    def _check_traces(cls, endpoint: str) -> str:
        if endpoint and (find_spec("opentelemetry") is None or find_spec("opentelemetry.exporter") is None):
            raise ValueError("Traces need the extra `otel`: pip install 'bestarm[otel]'")
        return endpoint

    @model_validator(mode="after")
    def _read_database_password(self) -> Settings:
        """Put the password into the URL, which is shown without it."""
        if self.database_password_file is not None:
            password = secret_in(self.database_password_file, "BESTARM_DATABASE_PASSWORD_FILE")
            self.database_url = with_password(self.database_url, password)
        return self

    @model_validator(mode="after")
    def _read_admin_key(self) -> Settings:
        """Take the key out of its file, where it is in one."""
        if self.admin_key is not None:
            # Secrets come with a line break at their end from many a place, and empty from compose, where they are not set.
            given = self.admin_key.get_secret_value().strip()
            self.admin_key = SecretStr(given) if given else None
        if self.admin_key_file is not None:
            self.admin_key = SecretStr(secret_in(self.admin_key_file, "BESTARM_ADMIN_KEY_FILE").strip())
        if self.admin_key is not None and len(self.admin_key.get_secret_value()) < SHORTEST_ADMIN_KEY:
            raise ValueError(
                f"BESTARM_ADMIN_KEY has at least {SHORTEST_ADMIN_KEY} characters, as `openssl rand -hex 32` gives them."
            )
        return self

    def admin_key_in_use(self) -> str | None:
        """The key that may do everything, if there is one."""
        return None if self.admin_key is None else self.admin_key.get_secret_value()

    @property
    def allowed_host_names(self) -> list[str]:
        """The names to answer to besides loopback's."""
        return _listed(self.allowed_hosts)

    @property
    def own_names(self) -> list[str]:
        """Where people look for the service, as far as it was told."""
        public = urlsplit(self.public_url or "").hostname
        return self.allowed_host_names if public is None else [*self.allowed_host_names, public]

    @property
    def cors_origin_names(self) -> list[str]:
        """The origins of pages that may call with a public key."""
        return _listed(self.cors_origins)

    @property
    def webhook_networks(self) -> AllowedNetworks:
        """The networks that webhooks may be in besides the public one."""
        return AllowedNetworks.named(_listed(self.webhook_allowed_networks))

    @property
    def reachable_at(self) -> str:
        """The address that decides who can reach the service."""
        return self.published_address or self.host
