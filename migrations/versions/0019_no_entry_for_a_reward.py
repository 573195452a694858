"""An index of the steps that ended in expired or voided, in the place of one of every change of status.

Most of those changes are rewards, and each paid for its entry. What was rewarded is found in the order of the draws.

Revision ID: 0019
Revises: 0018
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
# Releases at 0018 find the same without the old index, only slower (decision 14).
compatible_with = "0018"
branch_labels = None
depends_on = None

_ENDED = "kind IN ('expiry', 'void')"
_STATUS_CHANGED = "status_before <> status_after"
_COLUMNS = ["experiment_id", "status_after", "draw"]


def upgrade() -> None:
    """Expiries and voids alone."""
    op.create_index("ix_events_ended", "events", _COLUMNS, postgresql_where=sa.text(_ENDED), sqlite_where=sa.text(_ENDED))
    op.drop_index("ix_events_status", "events")


def downgrade() -> None:
    """As before."""
    op.create_index(
        "ix_events_status",
        "events",
        _COLUMNS,
        postgresql_where=sa.text(_STATUS_CHANGED),
        sqlite_where=sa.text(_STATUS_CHANGED),
    )
    op.drop_index("ix_events_ended", "events")
