"""The smallest difference that matters to an experiment, with a type for the rows that have it.

Revision ID: 0007
Revises: 0006
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """One column: none of the experiments that are there has said what matters to it."""
    connection = op.get_bind()
    op.add_column("experiments", sa.Column("worthwhile", sa.Double))
    if connection.dialect.name == "postgresql":
        columns = ", ".join(
            f"{column['name']} {column['type'].compile(connection.dialect)}"
            for column in sa.inspect(connection).get_columns("experiments")
        )
        op.execute(f"CREATE TYPE experiments_row_4 AS ({columns})")


def downgrade() -> None:
    """Without it: experiments that would conclude when decided do not conclude by themselves."""
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP TYPE experiments_row_4")
    forget = sa.text("UPDATE experiments SET conclude_when = NULL WHERE conclude_when LIKE :decided")
    op.get_bind().execute(forget, {"decided": '%"decided":true%'})
    op.drop_column("experiments", "worthwhile")
