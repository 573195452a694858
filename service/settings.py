"""All settings of the service, from BESTARM_* environment variables. Read by main, cli and migrations/env.py only."""

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
    log_level: str = Field("info", pattern="^(debug|info|warning|error)$", description="How much is logged.")
