"""Tags and an owner for experiments, the step that led to their status, and observations that can be corrected.

An observation gets a status, the epoch that it counts in and the sequence number of its last change; those that are there get
what the history says of them. Two indexes: observations are read in the order in which they came, with an id or without.

Writers wait while the indexes are built: some seconds for every million events.

Revision ID: 0006
Revises: 0005
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_OBSERVATION = sa.text("kind = 'observation'")
_ROW_TYPES = {"experiments": "experiments_row_3", "observations": "observations_row_2"}


def upgrade() -> None:
    """Columns, what they hold of what is there, indexes, and types for the rows with them."""
    connection = op.get_bind()
    op.add_column("experiments", sa.Column("tags", sa.Text, nullable=False, server_default="[]"))
    op.add_column("experiments", sa.Column("owner", sa.Text))
    op.add_column("experiments", sa.Column("last_move", sa.String(16)))
    op.add_column("observations", sa.Column("status", sa.String(16), nullable=False, server_default="rewarded"))
    op.add_column("observations", sa.Column("epoch", sa.Integer, nullable=False, server_default="1"))
    op.add_column("observations", sa.Column("changed", sa.BigInteger, nullable=False, server_default="0"))
    op.execute(
        "UPDATE observations SET changed = sequence, epoch = (SELECT e.epoch FROM events e "
        "WHERE e.experiment_id = observations.experiment_id AND e.sequence = observations.sequence)"
    )
    op.create_index("ix_observations_sequence", "observations", ["experiment_id", "sequence"])
    op.create_index(
        "ix_events_observations",
        "events",
        ["experiment_id", "sequence"],
        postgresql_where=_OBSERVATION,
        sqlite_where=_OBSERVATION,
    )
    if connection.dialect.name == "postgresql":
        for table, row_type in _ROW_TYPES.items():
            columns = ", ".join(
                f"{column['name']} {column['type'].compile(connection.dialect)}"
                for column in sa.inspect(connection).get_columns(table)
            )
            op.execute(f"CREATE TYPE {row_type} AS ({columns})")


def downgrade() -> None:
    """None of it. Corrected observations keep the reward they have; the release before cannot replay how they got it."""
    if op.get_bind().dialect.name == "postgresql":
        for row_type in _ROW_TYPES.values():
            op.execute(f"DROP TYPE {row_type}")
    op.drop_index("ix_events_observations", "events", postgresql_where=_OBSERVATION, sqlite_where=_OBSERVATION)
    op.drop_index("ix_observations_sequence", "observations")
    for column in ("changed", "epoch", "status"):
        op.drop_column("observations", column)
    for column in ("last_move", "owner", "tags"):
        op.drop_column("experiments", column)
