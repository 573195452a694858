"""Pruning: when an experiment gave up its single draws, with a type for the rows that say so, and how far that has come.

Revision ID: 0015
Revises: 0014
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

_ROW_TYPE = "experiments_row_7"


def upgrade() -> None:
    """A column that is empty, and a table: nothing was pruned yet."""
    connection = op.get_bind()
    op.add_column("experiments", sa.Column("pruned_at", sa.BigInteger))
    op.create_table(
        "prunings",
        sa.Column("experiment_id", sa.BigInteger, autoincrement=False, nullable=False),
        sa.Column("table_name", sa.String(32), nullable=False),
        sa.Column("last_row", sa.Text),
        sa.Column("removed", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("experiment_id", name="pk_prunings"),
        sa.ForeignKeyConstraint(["experiment_id"], ["experiments.id"], name="fk_prunings_experiment_id_experiments"),
    )
    if connection.dialect.name == "postgresql":
        columns = ", ".join(
            f"{column['name']} {column['type'].compile(connection.dialect)}"
            for column in sa.inspect(connection).get_columns("experiments")
        )
        op.execute(f"CREATE TYPE {_ROW_TYPE} AS ({columns})")


def downgrade() -> None:
    """What was pruned stays so, and is not known any more: its replay will miss events. What is half loaded is given up."""
    op.execute("UPDATE experiments SET status = 'deleted' WHERE status = 'loading'")
    if op.get_bind().dialect.name == "postgresql":
        op.execute(f"DROP TYPE {_ROW_TYPE}")
    op.drop_table("prunings")
    op.drop_column("experiments", "pruned_at")
