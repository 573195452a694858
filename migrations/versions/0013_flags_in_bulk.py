"""Experiments that OpenFeature evaluates in bulk, with a type for the rows that say so.

Revision ID: 0013
Revises: 0012
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

_ROW_TYPE = "experiments_row_6"
_INDEX = "ix_experiments_ofrep_bulk"


def upgrade() -> None:
    """A column and its index: none of the experiments that are there has opted in."""
    connection = op.get_bind()
    op.add_column("experiments", sa.Column("ofrep_bulk", sa.Boolean, nullable=False, server_default=sa.false()))
    chosen = sa.text("ofrep_bulk")
    op.create_index(_INDEX, "experiments", ["id"], postgresql_where=chosen, sqlite_where=chosen)
    if connection.dialect.name == "postgresql":
        columns = ", ".join(
            f"{column['name']} {column['type'].compile(connection.dialect)}"
            for column in sa.inspect(connection).get_columns("experiments")
        )
        op.execute(f"CREATE TYPE {_ROW_TYPE} AS ({columns})")


def downgrade() -> None:
    """Without it: no flag is evaluated in bulk."""
    if op.get_bind().dialect.name == "postgresql":
        op.execute(f"DROP TYPE {_ROW_TYPE}")
    op.drop_index(_INDEX, "experiments")
    op.drop_column("experiments", "ofrep_bulk")
