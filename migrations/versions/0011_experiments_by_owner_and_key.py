"""Indexes for the list of experiments: by owner, and by status in the order of keys.

Revision ID: 0011
Revises: 0010
"""

from __future__ import annotations

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

_INDEXES = {
    "ix_experiments_status_key": ["status", "key"],
    "ix_experiments_owner": ["owner", "id"],
    "ix_experiments_owner_key": ["owner", "key"],
}


def upgrade() -> None:
    """Nothing but indexes."""
    for name, columns in _INDEXES.items():
        op.create_index(name, "experiments", columns)


def downgrade() -> None:
    """Let them go."""
    for name in _INDEXES:
        op.drop_index(name, "experiments")
