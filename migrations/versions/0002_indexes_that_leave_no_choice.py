"""Indexes that leave the planner no choice.

Two unique indexes began with the experiment, as the primary keys do, so PostgreSQL could find rows by either. On a table that was
small when the statement was planned it sometimes took the wrong one, and read a whole experiment to find one row.

Asks and tells wait while the new indexes are built: some seconds for every million assignments.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_WITH_KEY = sa.text("idempotency_key IS NOT NULL")


def _order(arms: list[str], assignments: list[str]) -> None:
    op.drop_index("uq_arms_experiment_id_key", "arms")
    op.create_index("uq_arms_experiment_id_key", "arms", arms, unique=True)
    op.drop_index("uq_assignments_idempotency_key", "assignments", postgresql_where=_WITH_KEY, sqlite_where=_WITH_KEY)
    op.create_index(
        "uq_assignments_idempotency_key",
        "assignments",
        assignments,
        unique=True,
        postgresql_where=_WITH_KEY,
        sqlite_where=_WITH_KEY,
    )


def upgrade() -> None:
    """The key first."""
    _order(["key", "experiment_id"], ["idempotency_key", "experiment_id"])


def downgrade() -> None:
    """The experiment first."""
    _order(["experiment_id", "key"], ["experiment_id", "idempotency_key"])
