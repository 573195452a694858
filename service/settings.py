"""All settings of the service, from BESTARM_* environment variables. Made by main, cli and migrations/env.py only."""

from __future__ import annotations

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """Each field is the variable BESTARM_<NAME>; docs/settings.md lists them for people."""

    model_config = SettingsConfigDict(env_prefix="BESTARM_", extra="ignore")

    database_url: str = Field("sqlite:///bestarm.db", description="`sqlite:///file.db` or `postgresql://user:pw@host/db`.")
    host: str = Field("127.0.0.1", description="Address to listen on. Any other than loopback needs `--insecure`.")
    port: int = Field(8000, ge=0, le=65535, description="Port to listen on.")
    workers: int = Field(1, ge=1, le=64, description="Worker processes.")
    queue_limit: int = Field(
        4096,
        ge=1,
        description="Requests that may wait for their transaction in one worker; beyond it the answer is 503.",
    )
    sweep_seconds: float = Field(1.0, gt=0, le=5, description="How often each worker looks for expired draws.")
    allowed_hosts: str = Field(
        "",
        pattern=r"^$|^ *(\*\.)?[A-Za-z0-9._:\[\]-]+( *, *(\*\.)?[A-Za-z0-9._:\[\]-]+)* *$",
        description="Names to answer to besides loopback's, separated by commas; `*.example.com` is any below it.",
    )
    keep_alive_seconds: float = Field(75.0, gt=0, description="How long an idle connection is kept.")
    head_seconds: float = Field(10.0, gt=0, description="How long the head of a request may take to arrive.")
    body_seconds: float = Field(60.0, gt=0, description="How long a body may take to arrive, and an unread answer to be read on.")
    head_bytes: int = Field(32 * 1024, ge=1024, le=256 * 1024, description="How large the head of a request may be.")
    connection_limit: int = Field(8192, ge=1, description="Connections that one worker has at a time.")
    log_level: str = Field("info", pattern="^(debug|info|warning|error)$", description="How much is logged.")
