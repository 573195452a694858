"""Room beside an experiment's counters for lone draws that the rows of their arms do not count yet (docs/decisions/0007).

The release before does not know them. It must not run beside this one: it would choose arms without those draws.
"""

from __future__ import annotations

from collections import Counter

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """One column, and a type for the rows with it."""
    connection = op.get_bind()
    op.add_column("experiments", sa.Column("uncounted", sa.Text, nullable=False, server_default=""))
    if connection.dialect.name == "postgresql":
        columns = ", ".join(
            f"{column['name']} {column['type'].compile(connection.dialect)}"
            for column in sa.inspect(connection).get_columns("experiments")
        )
        op.execute(f"CREATE TYPE experiments_row_2 AS ({columns})")


def downgrade() -> None:
    """Count them, then none."""
    connection = op.get_bind()
    if connection.dialect.name == "postgresql":
        op.execute("LOCK TABLE experiments")
    count = sa.text(
        "UPDATE arms SET pending = pending + :times, epoch_draws = epoch_draws + :times, changed = :version "
        "WHERE experiment_id = :experiment AND position = :arm"
    )
    for experiment, version, arms in connection.execute(sa.text("SELECT id, version, uncounted FROM experiments")).all():
        for arm, times in Counter(map(int, filter(None, arms.split(",")))).items():
            connection.execute(count, {"experiment": experiment, "version": version, "arm": arm, "times": times})
    if connection.dialect.name == "postgresql":
        op.execute("DROP TYPE experiments_row_2")
    op.drop_column("experiments", "uncounted")
