"""Findings that are kept, and the arm that is live today, with types for the rows that have them.

Revision ID: 0009
Revises: 0008
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_ROW_TYPES = {"experiments": "experiments_row_5", "findings": "findings_row"}


def upgrade() -> None:
    """A table and a column. What has been shown before is found again by the first look, within a second of the start."""
    connection = op.get_bind()
    op.add_column("experiments", sa.Column("control", sa.Integer))
    op.create_table(
        "findings",
        sa.Column("experiment_id", sa.BigInteger, nullable=False, autoincrement=False),
        sa.Column("kind", sa.String(24), nullable=False),
        sa.Column("arm", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("better", sa.Integer, nullable=False),
        sa.Column("worse", sa.Integer),
        sa.Column("evidence", sa.Double, nullable=False),
        sa.Column("level", sa.Double, nullable=False),
        sa.Column("sequence", sa.BigInteger, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.ForeignKeyConstraint(["experiment_id"], ["experiments.id"], name="fk_findings_experiment_id_experiments"),
        sa.PrimaryKeyConstraint("experiment_id", "kind", "arm", name="pk_findings"),
    )
    if connection.dialect.name == "postgresql":
        for table, row_type in _ROW_TYPES.items():
            columns = ", ".join(
                f"{column['name']} {column['type'].compile(connection.dialect)}"
                for column in sa.inspect(connection).get_columns(table)
            )
            op.execute(f"CREATE TYPE {row_type} AS ({columns})")


def downgrade() -> None:
    """Without them. Events of findings stay in the history; the release before names them when it replays."""
    connection = op.get_bind()
    if connection.dialect.name == "postgresql":
        for row_type in _ROW_TYPES.values():
            op.execute(f"DROP TYPE {row_type}")
    op.drop_table("findings")
    forget = sa.text("UPDATE experiments SET conclude_when = NULL WHERE conclude_when LIKE :beats_control")
    connection.execute(forget, {"beats_control": '%"beats_control":true%'})
    op.drop_column("experiments", "control")
