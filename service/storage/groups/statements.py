"""One transaction for a group of requests: what the writer needs of a database, and the statements it uses.

The two engines differ in how rows travel, so each has one short module that runs the statements (postgres.py, sqlite.py). On
PostgreSQL all writes of a group are one statement, because each more would cost a round trip, and the rows of each table are one
array of a row type (migration 0003), because one array per column costs the driver several times as much. On SQLite a statement
takes many rows at once, because after each the thread would have to wait for the interpreter.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, Protocol, TypeAlias

from sqlalchemy import Column, Table
from sqlalchemy.dialects import postgresql

_POSTGRES = postgresql.dialect()  # type: ignore[no-untyped-call]
Values: TypeAlias = Sequence[Any]
Guard: TypeAlias = Sequence[tuple[int, int]]
"""(experiment's id, its version): what must still be so when a group is written. In order of the ids."""


class Reads(Protocol):
    """Anything that answers a query."""

    async def rows(self, query: Query, *columns: Values) -> Sequence[Any]:
        """The rows that a query finds for these parallel lists."""
        ...


class Group(Reads, Protocol):
    """An open transaction. It commits when its block ends well."""

    async def write(self, stages: Sequence[Stage]) -> None:
        """Run these inserts and updates, stage after stage."""
        ...


class Groups(Reads, Protocol):
    """Where groups come from: one at a time per process. Its own `rows` are read outside of any, also while one is written."""

    losses: int
    """How often a connection was lost: what the next one leads to may not be the same server."""

    def group(self) -> AbstractAsyncContextManager[Group]:
        """Begin a transaction."""
        ...

    async def write_if(self, guard: Guard, stages: Sequence[Stage]) -> bool:
        """All of it in one transaction, durable, if the guard holds; else False, and nothing is written.

        On a connection that took the place of a lost one no guard holds.
        """
        ...

    async def close(self) -> None:
        """Let go of the connection."""
        ...


@dataclass(frozen=True, slots=True)
class Query:
    """A select, in the words of both engines."""

    postgres: str
    sqlite: str
    of_one: str = ""
    """PostgreSQL's faster words for when the first column is one and the same, an experiment: it and the second column."""


@dataclass(frozen=True, slots=True, eq=False)
class Write:
    """What to do with some rows, in words that both engines understand."""

    table: Table
    """The rows are whole rows of it, None where a column does not matter."""
    statements: tuple[str, ...]
    """Each takes its rows from `{rows}` and does nothing unless `{allowed}`."""
    taken: str = ""
    """PostgreSQL's query for rows that stand in the way of these; SQLite finds out from its unique indexes."""
    versioned: bool = False
    """It updates the experiments' own rows, once in every group."""
    used: tuple[str, ...] = ()
    """The columns that it looks at; all if none is named."""
    places: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Where those columns stand in a row."""
        names = self.table.columns.keys()
        object.__setattr__(self, "places", tuple(names.index(name) for name in self.used or names))


Stage: TypeAlias = Sequence[tuple[Write, Sequence[tuple[Any, ...]]]]
"""Writes that touch different rows, each with its rows."""


@lru_cache(maxsize=256)
def one_statement(
    writes: tuple[Write, ...], guarded: Literal["", "by one", "by several"] = "", *, of_one_row: bool = False
) -> str:
    """All writes of a stage as one statement of PostgreSQL. It finds a row if they were done.

    The parameters are an array of rows for each write. Of one row each, they are the values of the rows as far as they are used,
    which costs both sides less than an array.

    Guarded by the version of one experiment or of several, they are done only if nobody was faster in any of them and no row
    stands in the way. One experiment's version is the last parameter, and updating its row is the guard. For several, the last
    parameters are their ids and versions, and their rows are locked in that order.
    """
    allowed = "EXISTS (SELECT FROM agreed)" if guarded else "true"
    place, sources, steps = 1, [], []
    for number, write in enumerate(writes):
        if of_one_row:
            columns = [list(write.table.columns)[used] for used in write.places]
            values = [f"${at}::{_type_of(column)} AS {column.name}" for at, column in enumerate(columns, place)]
            sources.append(f"r{number} AS NOT MATERIALIZED (SELECT {', '.join(values)})")
            place += len(values)
        else:
            sources.append(f"r{number} AS (SELECT * FROM unnest(${place}::{row_type(write.table)}[]))")
            place += 1
    blocked = [write.taken.format(rows=f"r{number}") for number, write in enumerate(writes) if write.taken]
    unless = "".join(f" AND NOT EXISTS ({query})" for query in blocked)
    for number, write in enumerate(writes):
        if guarded == "by one" and write.versioned:
            update = write.statements[0].format(rows=f"r{number}", allowed=f"t.version = ${place}::bigint{unless}")
            sources.append(f"agreed AS ({update} RETURNING 1)")
        else:
            steps += [statement.format(rows=f"r{number}", allowed=allowed) for statement in write.statements]
    if guarded == "by several":
        sources.append(
            f"locked AS (SELECT t.id FROM unnest(${place}::bigint[], ${place + 1}::bigint[]) AS g(id, version) "
            "CROSS JOIN experiments t WHERE t.id = g.id AND t.version = g.version FOR NO KEY UPDATE OF t), "
            f"agreed AS (SELECT count(*) FROM locked HAVING count(*) = cardinality(${place}){unless})"
        )
    named = [f"w{number} AS ({step})" for number, step in enumerate(steps)]
    return f"WITH {', '.join(sources + named)} SELECT 1 WHERE {allowed}"


def row_type(table: Table) -> str:
    """PostgreSQL's type for whole rows on their way to this table. Another one each time that the table gets a column."""
    return str(table.info.get("row_type", f"{table.name}_row"))


def _type_of(column: Column[Any]) -> str:
    """PostgreSQL's name of the type, without a length: a text that is too long is refused and not cut."""
    return str(column.type.compile(dialect=_POSTGRES)).partition("(")[0]


@lru_cache(maxsize=1024)
def many_rows(write: Write, count: int) -> tuple[str, ...]:
    """The statements of a write for so many rows at once, as SQLite takes them: their values as far as they are used."""
    columns = [write.table.columns.keys()[place] for place in write.places]
    values = ", ".join([f"({', '.join('?' * len(columns))})"] * count)
    rows = f"WITH r({', '.join(columns)}) AS (VALUES {values})"
    return tuple(f"{rows} {statement.format(rows='r', allowed='true')}" for statement in write.statements)


def query_by(
    table: Table,
    parameters: Sequence[str],
    condition: str,
    *,
    columns: Sequence[str] = (),
    tail: str = "",
    locking: str = "",
    of_one: str = "",
) -> Query:
    """A select of the rows `t` that match some wanted row `w`, whose columns a, b, … have these PostgreSQL types.

    CROSS JOIN keeps SQLite from scanning the large table first. `locking` is for PostgreSQL only.
    """
    names = [chr(ord("a") + place) for place in range(len(parameters))]
    shown = ", ".join(f"t.{name}" for name in columns or table.columns.keys())
    arrays = ", ".join(f"${place + 1}::{kind}[]" for place, kind in enumerate(parameters))
    parsed = ", ".join(f"json_extract(value, '$[{place}]') AS {name}" for place, name in enumerate(names))
    rest = f"CROSS JOIN {table.name} t WHERE {condition} {tail}"
    return Query(
        postgres=f"SELECT {shown} FROM unnest({arrays}) AS w({', '.join(names)}) {rest} {locking}",
        sqlite=f"SELECT {shown} FROM (SELECT {parsed} FROM json_each(?)) AS w {rest}",
        of_one=of_one and f"SELECT {shown} FROM {table.name} t WHERE {of_one}",
    )


def insert_into(table: Table, *also: tuple[Table, dict[str, str]], taken: str = "") -> Write:
    """An insert of whole rows, and of rows of other tables whose columns are given as expressions over the same columns.

    What the tables have in common travels and is encoded once, which is most of the cost of a draw.
    """
    every = ((table, {name: name for name in table.columns.keys()}), *also)  # noqa: SIM118 - a column collection is no mapping
    return Write(
        table,
        tuple(
            f"INSERT INTO {into.name} ({', '.join(columns)}) SELECT {', '.join(columns.values())} FROM {{rows}} WHERE {{allowed}}"
            for into, columns in every
        ),
        taken,
    )


def insert_and_update(rows: Table, into: Table, updated: Table, keys: Sequence[str], values: dict[str, str]) -> Write:
    """An insert of rows `v` into a table, and of what they say besides into rows `t` of another, by expressions over both."""
    return Write(rows, (*insert_into(into).statements, _update(updated, keys, values)))


def update_of(table: Table, keys: Sequence[str], values: Sequence[str], *, versioned: bool = False) -> Write:
    """An update of some columns by key."""
    update = _update(table, keys, {name: f"v.{name}" for name in values})
    return Write(table, (update,), versioned=versioned, used=(*keys, *values))


def _update(table: Table, keys: Sequence[str], values: dict[str, str]) -> str:
    assigned = ", ".join(f"{name} = {value}" for name, value in values.items())
    matched = " AND ".join(f"t.{name} = v.{name}" for name in keys)
    return f"UPDATE {table.name} AS t SET {assigned} FROM {{rows}} AS v WHERE {matched} AND {{allowed}}"
