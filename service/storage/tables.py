"""The tables. Keys start with the experiment, so that the tables can be distributed by it.

Times are microseconds since 1970 (UTC). JSON is kept as text. Exact sums are text ("385", "-3/2^4"; service/exact.py), because no
column type of both databases holds integers of any size. `events` and `batches` are the history: never updated, but for the name
of an observation that is forgotten (service/storage/forgetting.py), and deleted only with their whole experiment
(service/storage/removal.py), which takes the rows of every table that has an `experiment_id`, or when an experiment that is over
is pruned (service/storage/pruning.py). Everything else about traffic is a projection of them, written in the same transaction; of
the draws of an arm, up to 16 stand in `experiments.uncounted` instead of the arm's own row.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    false,
    text,
)

from service.storage import webhook_tables
from service.storage.table_metadata import Identity

# All tables: those of keys, sessions and webhooks are in it already.
metadata = webhook_tables.metadata


def _experiment_id() -> Column[int]:
    return Column("experiment_id", BigInteger, ForeignKey("experiments.id"), primary_key=True, autoincrement=False)


def _unchecked_experiment_id() -> Column[int]:
    """Without a foreign key, whose check would cost more than the insert: rows are written only with the experiment's own row."""
    return Column("experiment_id", BigInteger, primary_key=True, autoincrement=False)


# The statuses of an experiment whose rows are on their way out, because it was deleted, or in, from a file. No caller sees them.
DELETED = "deleted"
LOADING = "loading"
HIDDEN = (DELETED, LOADING)

experiments = Table(
    "experiments",
    metadata,
    Column("id", Identity, primary_key=True),
    Column("key", String(64), nullable=False, unique=True),
    Column("name", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("policy", Text, nullable=False),
    Column("reward", Text, nullable=False),
    Column("expiry", Text),
    Column("sticky", Boolean, nullable=False),
    Column("confidence", Double, nullable=False),
    Column("conclude_when", Text),
    Column("status", String(16), nullable=False),
    Column("concluded_arm", Integer),
    Column("created_at", BigInteger, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("as_of", BigInteger, nullable=False),
    Column("draws", BigInteger, nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("batch", BigInteger, nullable=False),
    Column("plan_cursor", Integer, nullable=False),
    Column("plan_averaged", BigInteger, nullable=False),
    Column("may_expire", Boolean, nullable=False),
    Column("observed", Boolean, nullable=False),
    Column("snapshot_at", BigInteger, nullable=False),
    Column("snapshot_stride", BigInteger, nullable=False),
    # The positions of arms, "3,1,3": see Progress.uncounted of service/domain/statistics.py.
    Column("uncounted", Text, nullable=False),
    Column("tags", Text, nullable=False),
    Column("owner", Text),
    # The step that led to the status, for those that take the same one again.
    Column("last_move", String(16)),
    Column("worthwhile", Double),
    Column("control", Integer),
    Column("ofrep_bulk", Boolean, nullable=False, server_default=false()),
    # When its single draws, rewards and observations were given up (service/storage/pruning.py).
    Column("pruned_at", BigInteger),
    Column("imported", BigInteger, nullable=False, server_default=text("0")),
    Index("ix_experiments_ofrep_bulk", "id", postgresql_where=text("ofrep_bulk"), sqlite_where=text("ofrep_bulk")),
    # Each in both orders of the list: by id, which is that of creation, and by key.
    Index("ix_experiments_status", "status", "id"),
    Index("ix_experiments_status_key", "status", "key"),
    Index("ix_experiments_owner", "owner", "id"),
    Index("ix_experiments_owner_key", "owner", "key"),
    info={"row_type": "experiments_row_8"},
    # An id is never given out again: what a worker remembers of a deleted experiment can fit no other one.
    sqlite_autoincrement=True,
)

arms = Table(
    "arms",
    metadata,
    _experiment_id(),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("key", String(64), nullable=False),
    Column("name", Text, nullable=False),
    Column("value", Text, nullable=False),
    Column("min_share", Double, nullable=False),
    Column("status", String(16), nullable=False),
    Column("added", Integer, nullable=False),
    # The sequence number of the last change: a worker that is behind reads only the arms that moved since.
    Column("changed", BigInteger, nullable=False),
    Column("pending", BigInteger, nullable=False),
    Column("expired", BigInteger, nullable=False),
    Column("epoch_draws", BigInteger, nullable=False),
    Column("observations", BigInteger, nullable=False),
    Column("reward_sum", Text, nullable=False),
    Column("reward_squares", Text, nullable=False),
    Column("imputed", BigInteger, nullable=False),
    Column("imputed_sum", Text, nullable=False),
    Column("imputed_squares", Text, nullable=False),
    Column("matured", BigInteger, nullable=False),
    Column("matured_sum", Text, nullable=False),
    Column("matured_squares", Text, nullable=False),
    Column("earlier", BigInteger, nullable=False),
    Column("earlier_sum", Text, nullable=False),
    Column("earlier_squares", Text, nullable=False),
    Column("planned", BigInteger, nullable=False),
    Column("plan_left", BigInteger, nullable=False),
    Column("plan_weight_sum", Double, nullable=False),
    # The key first, so that no index but the primary key serves to find an arm by its position.
    Index("uq_arms_experiment_id_key", "key", "experiment_id", unique=True),
)

assignments = Table(
    "assignments",
    metadata,
    _unchecked_experiment_id(),
    Column("draw", BigInteger, primary_key=True, autoincrement=False),
    Column("token", BigInteger, nullable=False),
    Column("sequence", BigInteger, nullable=False),
    Column("arm", Integer, nullable=False),
    Column("unit", Text),
    Column("reason", String(16), nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger),
    Column("expiry_reward", Double),
    Column("status", String(16), nullable=False),
    Column("reward", Double),
    Column("closed", Boolean, nullable=False),
    Column("rewarded_at", BigInteger),
    # When the sweep has to look at the row; null once it need not.
    Column("due_at", BigInteger),
    Column("idempotency_key", Text),
)
Index(
    "ix_assignments_unit",
    assignments.c.experiment_id,
    assignments.c.unit,
    assignments.c.draw,
    postgresql_where=text("unit IS NOT NULL"),
    sqlite_where=text("unit IS NOT NULL"),
)
Index(
    "uq_assignments_idempotency_key",
    assignments.c.idempotency_key,
    assignments.c.experiment_id,
    unique=True,
    postgresql_where=text("idempotency_key IS NOT NULL"),
    sqlite_where=text("idempotency_key IS NOT NULL"),
)
# No index has the status: as long as none has, PostgreSQL updates a row in place when its reward comes (a heap-only tuple). With
# one, a tell took a fifth more processor time (measured). What has become of assignments is found by their steps in `events`.
# Nor does one have the arm: it cost a batch of asks a fifth of the database's time, and a page by arm looks at a bounded number.
Index(
    "ix_assignments_due_at",
    assignments.c.experiment_id,
    assignments.c.due_at,
    postgresql_where=text("due_at IS NOT NULL"),
    sqlite_where=text("due_at IS NOT NULL"),
)

events = Table(
    "events",
    metadata,
    _unchecked_experiment_id(),
    Column("sequence", BigInteger, primary_key=True, autoincrement=False),
    Column("kind", String(16), nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("arm", Integer),
    Column("draw", BigInteger),
    Column("epoch", Integer),
    Column("reason", String(16)),
    Column("expires_at", BigInteger),
    Column("expiry_reward", Double),
    Column("status_before", String(16)),
    Column("reward_before", Double),
    Column("closed_before", Boolean),
    Column("status_after", String(16)),
    Column("reward_after", Double),
    Column("closed_after", Boolean),
    Column("details", Text),
)
# The audit log skips the traffic; so does its index. A new kind needs no other index: this one names what it leaves out.
# Queries say it in these very words, because neither database sees that a list of parameters would mean the same.
AUDITED_ONLY = "kind NOT IN ('draw', 'observation', 'reward', 'expiry', 'maturity')"
Index(
    "ix_events_audited",
    events.c.experiment_id,
    events.c.sequence,
    postgresql_where=text(AUDITED_ONLY),
    sqlite_where=text(AUDITED_ONLY),
)
# What webhooks are told of: by experiment, to go on behind a cursor, and by time, to see where there is news. Traffic has a draw,
# so the first words are all that it pays.
ANNOUNCED_ONLY = (
    "draw IS NULL AND kind IN ('leader_changed', 'separated', 'lifecycle', 'arm_added', 'arm_changed', 'drift_noticed')"
)
Index(
    "ix_events_announced",
    events.c.experiment_id,
    events.c.sequence,
    postgresql_where=text(ANNOUNCED_ONLY),
    sqlite_where=text(ANNOUNCED_ONLY),
)
Index("ix_events_announced_at", events.c.at, postgresql_where=text(ANNOUNCED_ONLY), sqlite_where=text(ANNOUNCED_ONLY))
# The steps by which assignments came to be expired or voided, which may be rare. Draws and rewards are not in it: an entry for
# each reward was a fifth of what a batch of tells writes to PostgreSQL's log (440 bytes a tell with it, 347 without).
ENDED_ONLY = "kind IN ('expiry', 'void')"
Index(
    "ix_events_ended",
    events.c.experiment_id,
    events.c.status_after,
    events.c.draw,
    postgresql_where=text(ENDED_ONLY),
    sqlite_where=text(ENDED_ONLY),
)

# Observations with an id and without are listed together, from the history.
OBSERVED_ONLY = "kind = 'observation'"
Index(
    "ix_events_observations",
    events.c.experiment_id,
    events.c.sequence,
    postgresql_where=text(OBSERVED_ONLY),
    sqlite_where=text(OBSERVED_ONLY),
)

# No table: the rows in which steps travel. An event, and what it did to its assignment's times (migration 0005).
steps = Table(
    "steps",
    MetaData(),
    *(Column(column.name, column.type) for column in events.columns),
    Column("rewarded_at", BigInteger),
    Column("due_at", BigInteger),
)

batches = Table(
    "batches",
    metadata,
    _experiment_id(),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("sequence", BigInteger, nullable=False),
    Column("positions", Text, nullable=False),
    Column("counts", Text, nullable=False),
)

# The course of the experiment: thinned as it grows, so its size is bounded. `body` is compressed JSON.
snapshots = Table(
    "snapshots",
    metadata,
    _experiment_id(),
    Column("sequence", BigInteger, primary_key=True, autoincrement=False),
    Column("at", BigInteger, nullable=False),
    Column("body", LargeBinary, nullable=False),
)

observations = Table(
    "observations",
    metadata,
    _experiment_id(),
    Column("id", String(255), primary_key=True),
    Column("arm", Integer, nullable=False),
    # The last one: a voided observation keeps it, and counts nothing.
    Column("reward", Double, nullable=False),
    Column("sequence", BigInteger, nullable=False),
    Column("status", String(16), nullable=False),
    Column("epoch", Integer, nullable=False),
    # The sequence number of its last change, its arrival included.
    Column("changed", BigInteger, nullable=False),
    Index("ix_observations_sequence", "experiment_id", "sequence"),
    info={"row_type": "observations_row_2"},
)

# The findings that hold: at most one of a kind about an arm.
findings = Table(
    "findings",
    metadata,
    _experiment_id(),
    Column("kind", String(24), primary_key=True),
    Column("arm", Integer, primary_key=True, autoincrement=False),
    Column("better", Integer, nullable=False),
    Column("worse", Integer),
    Column("evidence", Double, nullable=False),
    Column("level", Double, nullable=False),
    Column("sequence", BigInteger, nullable=False),
    Column("at", BigInteger, nullable=False),
)

# experiment_id 0 stands for routes outside an experiment, which no foreign key could allow.
replies = Table(
    "replies",
    metadata,
    _unchecked_experiment_id(),
    Column("route", String(32), primary_key=True),
    Column("key", String(255), primary_key=True),
    Column("body_hash", String(64), nullable=False),
    Column("status", Integer, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Index("ix_replies_created_at", "created_at"),
)

# How far the pruning of an experiment has come; gone when it is done.
prunings = Table(
    "prunings",
    metadata,
    _experiment_id(),
    # The name of the table that it is at, and as JSON the primary key of the last row that went there, without the experiment.
    Column("table_name", String(32), nullable=False),
    Column("last_row", Text),
    Column("removed", BigInteger, nullable=False),
)

# What happened to the instance and not to one experiment of it, which may be gone.
instance_log = Table(
    "instance_log",
    metadata,
    Column("id", Identity, primary_key=True),
    Column("at", BigInteger, nullable=False),
    Column("kind", String(32), nullable=False),
    Column("details", Text, nullable=False),
)
