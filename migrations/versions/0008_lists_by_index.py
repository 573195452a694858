"""Indexes for lists: assignments by arm, and by the steps that led to their status; experiments by status.

No index has the status of assignments itself, for which every tell would pay (service/storage/tables.py).

Revision ID: 0008
Revises: 0007
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_STATUS_CHANGED = "status_before <> status_after"


def upgrade() -> None:
    """Nothing but indexes."""
    op.create_index("ix_experiments_status", "experiments", ["status", "id"])
    op.create_index("ix_assignments_arm", "assignments", ["experiment_id", "arm", "draw"])
    op.create_index(
        "ix_events_status",
        "events",
        ["experiment_id", "status_after", "draw"],
        postgresql_where=sa.text(_STATUS_CHANGED),
        sqlite_where=sa.text(_STATUS_CHANGED),
    )


def downgrade() -> None:
    """Let them go."""
    op.drop_index("ix_events_status", "events")
    op.drop_index("ix_assignments_arm", "assignments")
    op.drop_index("ix_experiments_status", "experiments")
