"""One transaction for a group of requests: what the writer needs of a database, and the statements it uses.

The two engines differ in how lists travel (arrays to PostgreSQL, JSON or executemany to SQLite), so the statements are generated
from the tables once per engine, and each engine has one short module that runs them (postgres.py, sqlite.py).
Every statement takes parallel lists, one per column: its text never changes with their length, so it is prepared once.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from sqlalchemy import BigInteger, Boolean, Double, Integer, LargeBinary, Table

Column = Sequence[Any]


class Group(Protocol):
    """An open transaction. It commits when its block ends well."""

    async def rows(self, query: Query, *columns: Column) -> Sequence[Any]:
        """The rows that a query finds for these parallel lists."""
        ...

    async def write(self, writes: Sequence[tuple[Write, Sequence[Column]]]) -> None:
        """Run these inserts and updates, in order."""
        ...


class Groups(Protocol):
    """Where groups come from: one at a time per process."""

    def group(self) -> AbstractAsyncContextManager[Group]:
        """Begin a transaction."""
        ...

    async def close(self) -> None:
        """Let go of the connection."""
        ...


@dataclass(frozen=True, slots=True)
class Query:
    """A select, in the words of both engines."""

    postgres: str
    sqlite: str


@dataclass(frozen=True, slots=True)
class Write:
    """An insert of whole rows or an update by key, in the words of both engines."""

    columns: tuple[str, ...]
    postgres: str
    sqlite: tuple[str, ...]
    """Each is run for all rows, one after the other."""


def query_by(
    table: Table, parameters: Sequence[str], condition: str, *, columns: Sequence[str] = (), tail: str = "", locking: str = ""
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
    )


def insert_into(table: Table) -> Write:
    """An insert of whole rows."""
    columns = tuple(table.columns.keys())
    names = ", ".join(columns)
    return Write(
        columns,
        postgres=f"INSERT INTO {table.name} ({names}) SELECT * FROM {_unnested(table, columns)}",
        sqlite=(f"INSERT INTO {table.name} ({names}) VALUES ({', '.join('?' * len(columns))})",),
    )


def insert_into_both(source: Sequence[tuple[str, str]], *inserts: tuple[Table, dict[str, str]]) -> Write:
    """Rows of several tables from the same lists: each table's columns are given as expressions over the lists' names.

    What the tables have in common travels and is encoded once, which is most of the cost of a draw.
    """
    names = tuple(name for name, _ in source)
    arrays = ", ".join(f"${place + 1}::{kind}[]" for place, (_, kind) in enumerate(source))
    selects = [
        f"INSERT INTO {table.name} ({', '.join(columns)}) SELECT {', '.join(columns.values())} FROM d"
        for table, columns in inserts
    ]
    steps = [f"d AS (SELECT * FROM unnest({arrays}) AS d({', '.join(names)}))"]
    steps += [f"i{place} AS ({select})" for place, select in enumerate(selects[:-1])]
    places = {name: f"?{place + 1}" for place, name in enumerate(names)}
    return Write(
        names,
        postgres=f"WITH {', '.join(steps)} {selects[-1]}",
        sqlite=tuple(
            f"INSERT INTO {table.name} ({', '.join(columns)}) "
            f"VALUES ({', '.join(places.get(expression, expression) for expression in columns.values())})"
            for table, columns in inserts
        ),
    )


def update_of(table: Table, keys: Sequence[str], values: Sequence[str]) -> Write:
    """An update of some columns by key; the lists come values first, then keys."""
    columns = (*values, *keys)
    renamed = ", ".join(f"{name} = v.{name}" for name in values)
    matched = " AND ".join(f"t.{name} = v.{name}" for name in keys)
    aliases = ", ".join(columns)
    assigned = ", ".join(f"{name} = ?" for name in values)
    found = " AND ".join(f"{name} = ?" for name in keys)
    return Write(
        columns,
        postgres=f"UPDATE {table.name} t SET {renamed} FROM {_unnested(table, columns)} AS v({aliases}) WHERE {matched}",
        sqlite=(f"UPDATE {table.name} SET {assigned} WHERE {found}",),
    )


def _unnested(table: Table, columns: Sequence[str]) -> str:
    arrays = ", ".join(f"${place + 1}::{_postgres_type(table, name)}[]" for place, name in enumerate(columns))
    return f"unnest({arrays})"


def _postgres_type(table: Table, name: str) -> str:
    kind = table.columns[name].type
    known = ((Boolean, "boolean"), (BigInteger, "bigint"), (Integer, "integer"), (Double, "float8"), (LargeBinary, "bytea"))
    return next((word for python, word in known if isinstance(kind, python)), "text")
