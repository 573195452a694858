"""A type for the rows in which steps of assignments travel: an event, and the times that it leaves its assignment with.

Until now the statement computed these times from the event. Now they come from where the rules of an assignment's steps are
(service/domain/transitions.py). No table changes.

Revision ID: 0005
Revises: 0004
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Only PostgreSQL has types for rows."""
    connection = op.get_bind()
    if connection.dialect.name == "postgresql":
        columns = ", ".join(
            f"{column['name']} {column['type'].compile(connection.dialect)}"
            for column in sa.inspect(connection).get_columns("events")
        )
        op.execute(f"CREATE TYPE steps_row AS ({columns}, rewarded_at bigint, due_at bigint)")


def downgrade() -> None:
    """Let it go."""
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP TYPE steps_row")
