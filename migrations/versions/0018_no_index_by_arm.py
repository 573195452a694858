"""No index of assignments by arm, for which every draw paid; and room on their pages for every reward.

A draw grows by its reward: on pages half full one in six of a large batch found no room any more, and every index had to be told.

Revision ID: 0018
Revises: 0017
"""

from __future__ import annotations

from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Let the index go; pages that are filled from now on keep more room."""
    op.drop_index("ix_assignments_arm", "assignments")
    if op.get_bind().dialect.name == "postgresql":
        op.execute("ALTER TABLE assignments SET (fillfactor = 44)")


def downgrade() -> None:
    """As before."""
    if op.get_bind().dialect.name == "postgresql":
        op.execute("ALTER TABLE assignments SET (fillfactor = 50)")
    op.create_index("ix_assignments_arm", "assignments", ["experiment_id", "arm", "draw"])
