"""Which releases may share a database: those from one migration on, as the database itself says.

A release is as far as its newest migration, its head. On a database that is further it knows nothing of what was added, and may
run there only if all of that left what it needs where it was. Each migration says so by `compatible_with`: the oldest head whose
releases may go on beside it, or nothing if there is none but its own. The most demanding of a database's migrations decides, and
stands in a table of one row beside alembic's own, because the releases that have to read it are older than the migrations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import Column, MetaData, String, Table, inspect, select

if TYPE_CHECKING:
    from alembic.script import ScriptDirectory
    from sqlalchemy.engine import Connection

TABLE = "schema_compatibility"
_REVISION = String(32)  # as alembic's own
# Not among the tables that migrations make: it is there before them, as alembic's is.
_compatibility = Table(
    TABLE,
    MetaData(),
    Column("revision", _REVISION, primary_key=True),
    Column("compatible_with", _REVISION, nullable=False),
)


class Schema(NamedTuple):
    """How far a database is."""

    revision: str | None
    """Its newest migration; None for an empty one."""
    compatible_with: str | None
    """The oldest head whose releases may use it; None if it does not say."""


def compatible_with(script: ScriptDirectory, revision: str) -> str:
    """The oldest head whose releases may use a database at this revision."""
    behind = script.iterate_revisions(revision, "base")
    return max(getattr(one.module, "compatible_with", one.revision) for one in behind)


def record(connection: Connection, script: ScriptDirectory, revision: str | None) -> None:
    """Write it down, after migrations up or down to this revision."""
    if revision is None:
        _compatibility.drop(connection, checkfirst=True)
        return
    _compatibility.create(connection, checkfirst=True)
    expected = (revision, compatible_with(script, revision))
    if [tuple(row) for row in connection.execute(select(_compatibility))] != [expected]:
        connection.execute(_compatibility.delete())
        connection.execute(_compatibility.insert().values(revision=expected[0], compatible_with=expected[1]))


def recorded(connection: Connection, revision: str | None) -> Schema:
    """What a database at this revision says. A record of another revision is left over from a release that kept none."""
    if revision is None or not inspect(connection).has_table(TABLE):
        return Schema(revision, None)
    one = select(_compatibility.c.compatible_with).where(_compatibility.c.revision == revision)
    return Schema(revision, connection.execute(one).scalar())
