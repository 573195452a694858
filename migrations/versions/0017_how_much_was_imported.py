"""How many rewards came without an ask, counted with each experiment, and a type for the rows that say so.

Revision ID: 0017
Revises: 0016
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

_ROW_TYPE = "experiments_row_8"
# Those that have any are marked. A voided observation counts nothing.
_COUNT = """
UPDATE experiments SET imported =
    (SELECT count(*) FROM events e WHERE e.experiment_id = experiments.id AND e.kind = 'observation')
    - (SELECT count(*) FROM observations o WHERE o.experiment_id = experiments.id AND o.status = 'voided')
WHERE observed
"""


def upgrade() -> None:
    """A column, counted from the history of those that have observations."""
    connection = op.get_bind()
    op.add_column("experiments", sa.Column("imported", sa.BigInteger, nullable=False, server_default=sa.text("0")))
    op.execute(_COUNT)
    if connection.dialect.name == "postgresql":
        columns = ", ".join(
            f"{column['name']} {column['type'].compile(connection.dialect)}"
            for column in sa.inspect(connection).get_columns("experiments")
        )
        op.execute(f"CREATE TYPE {_ROW_TYPE} AS ({columns})")


def downgrade() -> None:
    """Without it: the history still has every observation."""
    if op.get_bind().dialect.name == "postgresql":
        op.execute(f"DROP TYPE {_ROW_TYPE}")
    op.drop_column("experiments", "imported")
