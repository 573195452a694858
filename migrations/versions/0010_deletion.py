"""Deletion: a log of the instance, and ids of experiments that are never given out again.

SQLite gives a deleted highest id to the next row unless the table says AUTOINCREMENT, for which it is rebuilt here: as many rows
as there are experiments. PostgreSQL's sequences never go back.

Revision ID: 0010
Revises: 0009
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

_OF_EXPERIMENTS = ("findings", "replies", "observations", "snapshots", "batches", "events", "assignments", "arms")
_IDENTITY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """The log, and the ids."""
    op.create_table(
        "instance_log",
        sa.Column("id", _IDENTITY, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("details", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_instance_log"),
    )
    _rebuild(autoincrement=True)


def downgrade() -> None:
    """Neither. What is still on its way out goes at once: the release before would show it."""
    deleted = "(SELECT id FROM experiments WHERE status = 'deleted')"
    for table in _OF_EXPERIMENTS:
        op.execute(f"DELETE FROM {table} WHERE experiment_id IN {deleted}")  # noqa: S608 - names of our own
    op.execute("DELETE FROM experiments WHERE status = 'deleted'")
    _rebuild(autoincrement=False)
    op.drop_table("instance_log")


def _rebuild(*, autoincrement: bool) -> None:
    if op.get_bind().dialect.name == "sqlite":
        with op.batch_alter_table("experiments", recreate="always", table_kwargs={"sqlite_autoincrement": autoincrement}):
            pass
