"""Types for rows on their way to PostgreSQL.

A group's rows travel as one array per table (service/storage/groups.py). A table has such a type by itself, but it changes
with the table: a release that still runs while the next one adds a column could write no more. So the rows have types of their
own. A migration that adds a column makes a new type, and leaves the old one to the release before it.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_TABLES = ("experiments", "arms", "assignments", "events", "batches", "snapshots", "observations", "replies")


def upgrade() -> None:
    """One for each table, with its columns of now."""
    connection = op.get_bind()
    if connection.dialect.name != "postgresql":
        return
    for table in _TABLES:
        columns = ", ".join(
            f"{column['name']} {column['type'].compile(connection.dialect)}"
            for column in sa.inspect(connection).get_columns(table)
        )
        op.execute(f"CREATE TYPE {table}_row AS ({columns})")


def downgrade() -> None:
    """None."""
    if op.get_bind().dialect.name == "postgresql":
        for table in _TABLES:
            op.execute(f"DROP TYPE {table}_row")
