"""Keys of the API, and the number of their last change, by which every worker notices it.

Revision ID: 0012
Revises: 0011
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

_IDENTITY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Two tables, and the one row of the second."""
    op.create_table(
        "api_keys",
        sa.Column("number", _IDENTITY, nullable=False),
        sa.Column("id", sa.String(24), nullable=False),
        sa.Column("kind", sa.String(8), nullable=False),
        sa.Column("prefix", sa.String(24), nullable=False),
        sa.Column("digest", sa.LargeBinary, nullable=False),
        sa.Column("label", sa.String(100), nullable=False),
        sa.Column("scopes", sa.Text, nullable=False),
        sa.Column("experiments", sa.Text),
        sa.Column("origins", sa.Text),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("created_by", sa.String(24)),
        sa.Column("expires_at", sa.BigInteger),
        sa.Column("revoked_at", sa.BigInteger),
        sa.Column("last_used_at", sa.BigInteger),
        sa.Column("successor", sa.String(24)),
        sa.Column("change", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_api_keys"),
        sa.UniqueConstraint("id", name="uq_api_keys_id"),
        sa.UniqueConstraint("prefix", name="uq_api_keys_prefix"),
        sa.UniqueConstraint("change", name="uq_api_keys_change"),
    )
    op.create_table(
        "api_key_changes",
        sa.Column("id", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_api_key_changes"),
    )
    op.execute("INSERT INTO api_key_changes (id, number) VALUES (1, 0)")


def downgrade() -> None:
    """Without keys, whoever reaches the port may do everything again."""
    op.drop_table("api_key_changes")
    op.drop_table("api_keys")
