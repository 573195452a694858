"""Sessions of the dashboard, the number of their last change, and makers of keys that are no keys themselves.

Revision ID: 0014
Revises: 0013
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Two tables, and the one row of the second; an account's id is longer than a key's."""
    op.create_table(
        "sessions",
        sa.Column("digest", sa.LargeBinary, nullable=False),
        sa.Column("caller", sa.String(80), nullable=False),
        sa.Column("basis", sa.LargeBinary, nullable=False),
        sa.Column("label", sa.String(100)),
        sa.Column("scopes", sa.Text),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("expires_at", sa.BigInteger, nullable=False),
        sa.Column("ended_at", sa.BigInteger),
        sa.Column("change", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("digest", name="pk_sessions"),
        sa.UniqueConstraint("change", name="uq_sessions_change"),
    )
    op.create_table(
        "session_changes",
        sa.Column("id", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_session_changes"),
    )
    op.execute("INSERT INTO session_changes (id, number) VALUES (1, 0)")
    with op.batch_alter_table("api_keys") as batch:
        batch.alter_column("created_by", type_=sa.String(80), existing_type=sa.String(24))


def downgrade() -> None:
    """Everybody is signed out; who made a key is cut where a key's id would end."""
    op.execute("UPDATE api_keys SET created_by = substr(created_by, 1, 24)")
    with op.batch_alter_table("api_keys") as batch:
        batch.alter_column("created_by", type_=sa.String(24), existing_type=sa.String(80))
    op.drop_table("session_changes")
    op.drop_table("sessions")
