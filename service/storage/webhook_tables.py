"""The tables of webhooks: endpoints, how far the history was handed out, and the messages that wait or were delivered.

The history itself is the outbox: what is told was written in the transaction that did it. `webhook_cursors` says of each
experiment up to which event messages were made; each message goes to one endpoint. What an endpoint is still to be told of one
experiment is a queue. A queue is there while a message waits in it, its first message is the next to be sent, and whoever sends
it has moved `due_at` to when others may try. Messages and queues name the experiment as their `subject`: they outlive its
deletion. Whoever locks rows of several tables locks them in the order in which the tables stand here, queues before deliveries.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Integer, String, Table, Text, text

from service.storage.access_tables import metadata
from service.storage.table_metadata import Identity

__all__ = ["metadata", "webhook_changes", "webhook_cursors", "webhook_deliveries", "webhook_queues", "webhooks"]

# The secrets are kept as they are: messages are signed with them.
webhooks = Table(
    "webhooks",
    metadata,
    Column("number", Identity, primary_key=True),
    Column("id", String(24), nullable=False, unique=True),
    Column("url", Text, nullable=False),
    Column("events", Text, nullable=False),
    Column("experiments", Text),
    Column("template", String(16), nullable=False),
    Column("secrets", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("created_by", String(80)),
    Column("status", String(16), nullable=False),
    Column("notice", Text),
)

# One row: the number of the last change to `webhooks`. Whoever changes one holds it; workers look at nothing else while it stays.
webhook_changes = Table(
    "webhook_changes",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("number", BigInteger, nullable=False),
)

webhook_cursors = Table(
    "webhook_cursors",
    metadata,
    # Without a foreign key: the row is written under a lock that keeps the experiment.
    Column("experiment_id", BigInteger, primary_key=True, autoincrement=False),
    Column("sequence", BigInteger, nullable=False),
    # Of this database's webhooks: where an experiment is loaded, others listen, from then on.
    info={"copied": False},
)

webhook_queues = Table(
    "webhook_queues",
    metadata,
    Column("webhook", String(24), primary_key=True),
    Column("subject", BigInteger, primary_key=True, autoincrement=False),
    # When its first message may be tried, by the database's clock.
    Column("due_at", BigInteger, nullable=False),
    # Who sends it just now.
    Column("claim", String(24)),
    Index("ix_webhook_queues_due_at", "due_at"),
)

WAITING_ONLY = "status = 'waiting'"
webhook_deliveries = Table(
    "webhook_deliveries",
    metadata,
    Column("number", Identity, primary_key=True),
    Column("id", String(24), nullable=False, unique=True),
    Column("webhook", String(24), nullable=False),
    # None for a test.
    Column("subject", BigInteger),
    Column("experiment", String(64)),
    Column("sequence", BigInteger),
    Column("event", String(32), nullable=False),
    Column("message", Text, nullable=False),
    Column("status", String(16), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("attempted_at", BigInteger),
    Column("next_attempt_at", BigInteger),
    Column("delivered_at", BigInteger),
    Column("response_status", Integer),
    Column("error", Text),
    # An endpoint has one message of an event, whoever hands it out.
    Index("uq_webhook_deliveries_event", "webhook", "subject", "sequence", unique=True),
    Index("ix_webhook_deliveries_list", "webhook", "number"),
    Index("ix_webhook_deliveries_created_at", "created_at"),
    Index(
        "ix_webhook_deliveries_waiting",
        "webhook",
        "subject",
        "sequence",
        postgresql_where=text(WAITING_ONLY),
        sqlite_where=text(WAITING_ONLY),
    ),
    # A page token is a number, and the number of a message that was removed must not come again.
    sqlite_autoincrement=True,
)
