"""Webhooks: endpoints, cursors, messages and their queues; and where the events stand that they are told of.

Revision ID: 0016
Revises: 0015
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

_WAITING = sa.text("status = 'waiting'")
_ANNOUNCED = sa.text(
    "draw IS NULL AND kind IN ('leader_changed', 'separated', 'lifecycle', 'arm_added', 'arm_changed', 'drift_noticed')"
)


def upgrade() -> None:
    """Five tables, the one row of the second, and two small indexes over the history."""
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "webhooks",
        sa.Column("number", number, nullable=False),
        sa.Column("id", sa.String(24), nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("events", sa.Text, nullable=False),
        sa.Column("experiments", sa.Text),
        sa.Column("template", sa.String(16), nullable=False),
        sa.Column("secrets", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("created_by", sa.String(80)),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("notice", sa.Text),
        sa.PrimaryKeyConstraint("number", name="pk_webhooks"),
        sa.UniqueConstraint("id", name="uq_webhooks_id"),
    )
    op.create_table(
        "webhook_changes",
        sa.Column("id", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_webhook_changes"),
    )
    op.execute("INSERT INTO webhook_changes (id, number) VALUES (1, 0)")
    op.create_table(
        "webhook_cursors",
        sa.Column("experiment_id", sa.BigInteger, autoincrement=False, nullable=False),
        sa.Column("sequence", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("experiment_id", name="pk_webhook_cursors"),
    )
    op.create_table(
        "webhook_deliveries",
        sa.Column("number", number, nullable=False),
        sa.Column("id", sa.String(24), nullable=False),
        sa.Column("webhook", sa.String(24), nullable=False),
        sa.Column("subject", sa.BigInteger),
        sa.Column("experiment", sa.String(64)),
        sa.Column("sequence", sa.BigInteger),
        sa.Column("event", sa.String(32), nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("attempted_at", sa.BigInteger),
        sa.Column("next_attempt_at", sa.BigInteger),
        sa.Column("delivered_at", sa.BigInteger),
        sa.Column("response_status", sa.Integer),
        sa.Column("error", sa.Text),
        sa.PrimaryKeyConstraint("number", name="pk_webhook_deliveries"),
        sa.UniqueConstraint("id", name="uq_webhook_deliveries_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("uq_webhook_deliveries_event", "webhook_deliveries", ["webhook", "subject", "sequence"], unique=True)
    op.create_index("ix_webhook_deliveries_list", "webhook_deliveries", ["webhook", "number"])
    op.create_index("ix_webhook_deliveries_created_at", "webhook_deliveries", ["created_at"])
    op.create_index(
        "ix_webhook_deliveries_waiting",
        "webhook_deliveries",
        ["webhook", "subject", "sequence"],
        postgresql_where=_WAITING,
        sqlite_where=_WAITING,
    )
    op.create_table(
        "webhook_queues",
        sa.Column("webhook", sa.String(24), nullable=False),
        sa.Column("subject", sa.BigInteger, autoincrement=False, nullable=False),
        sa.Column("due_at", sa.BigInteger, nullable=False),
        sa.Column("claim", sa.String(24)),
        sa.PrimaryKeyConstraint("webhook", "subject", name="pk_webhook_queues"),
    )
    op.create_index("ix_webhook_queues_due_at", "webhook_queues", ["due_at"])
    for name, columns in (("ix_events_announced", ["experiment_id", "sequence"]), ("ix_events_announced_at", ["at"])):
        op.create_index(name, "events", columns, postgresql_where=_ANNOUNCED, sqlite_where=_ANNOUNCED)


def downgrade() -> None:
    """Endpoints are forgotten, and with them what they were still to be told."""
    for name in ("ix_events_announced_at", "ix_events_announced"):
        op.drop_index(name, table_name="events")
    for name in ("webhook_queues", "webhook_deliveries", "webhook_cursors", "webhook_changes", "webhooks"):
        op.drop_table(name)
