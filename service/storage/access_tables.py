"""The tables of who may do what: keys, and sessions of the dashboard."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Integer, LargeBinary, String, Table, Text

from service.storage.table_metadata import Identity, metadata

__all__ = ["api_key_changes", "api_keys", "metadata", "session_changes", "sessions"]

# Keys of the API. The secret itself is nowhere: `digest` is its SHA-256.
api_keys = Table(
    "api_keys",
    metadata,
    Column("number", Identity, primary_key=True),
    Column("id", String(24), nullable=False, unique=True),
    Column("kind", String(8), nullable=False),
    Column("prefix", String(24), nullable=False, unique=True),
    Column("digest", LargeBinary, nullable=False),
    Column("label", String(100), nullable=False),
    Column("scopes", Text, nullable=False),
    Column("experiments", Text),
    Column("origins", Text),
    Column("created_at", BigInteger, nullable=False),
    Column("created_by", String(80)),
    Column("expires_at", BigInteger),
    Column("revoked_at", BigInteger),
    Column("last_used_at", BigInteger),
    Column("successor", String(24)),
    Column("change", BigInteger, nullable=False, unique=True),
)

# One row: the number of the last change to `api_keys`. Whoever changes a key holds it, so changes are seen in their order.
api_key_changes = Table(
    "api_key_changes",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("number", BigInteger, nullable=False),
)

# Who is signed in to the dashboard. The token itself is nowhere: `digest` is its SHA-256.
sessions = Table(
    "sessions",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    Column("caller", String(80), nullable=False),
    Column("basis", LargeBinary, nullable=False),
    Column("label", String(100)),
    Column("scopes", Text),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Column("ended_at", BigInteger),
    Column("change", BigInteger, nullable=False, unique=True),
)

# One row: the number of the last change to `sessions`, as `api_key_changes` has it for keys.
session_changes = Table(
    "session_changes",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("number", BigInteger, nullable=False),
)
