"""What a cluster that shards by experiment would need: keys that have it, and statements on the hot path that name it.

docs/operations.md (sizing) says what else it would need.
"""

from __future__ import annotations

import re

import pytest
from sqlalchemy import Table, UniqueConstraint

from service.storage.groups import lookup_queries, writes
from service.storage.groups.statements import Query, Write
from service.storage.tables import metadata

_TRAFFIC = [table for table in metadata.sorted_tables if "experiment_id" in table.columns]
# Unique, and the experiment comes second: PostgreSQL's planner would take them for the primary key otherwise. A cluster that
# shards by the hash of the experiment asks only that it is among the columns.
_SECOND = {"uq_arms_experiment_id_key", "uq_assignments_idempotency_key"}
# Not unique, and of no experiment: what is old is forgotten, and what is new is told to webhooks, wherever it is.
_BY_TIME = {"ix_replies_created_at", "ix_events_announced_at"}
_WRITES = {name: one for name, one in vars(writes).items() if isinstance(one, Write)}
_QUERIES = {name: one for module in (writes, lookup_queries) for name, one in vars(module).items() if isinstance(one, Query)}
_NAMES_IT = re.compile(r"\b[a-z]\.experiment_id (?:= |- )[a-z]\.(?:a|id|experiment_id)\b")


def _indexes(table: Table) -> list[tuple[str, bool, list[str]]]:
    """Name, is it unique, and columns, of indexes and of unique constraints."""
    made = [(str(one.name), bool(one.unique), [column.name for column in one.columns]) for one in table.indexes]
    constraints = [one for one in table.constraints if isinstance(one, UniqueConstraint)]
    return made + [(str(one.name), True, [column.name for column in one.columns]) for one in constraints]


@pytest.mark.parametrize("table", _TRAFFIC, ids=str)
def test_a_key_starts_with_the_experiment(table: Table) -> None:
    """The primary key, and every index: the unique ones have it, all others start with it."""
    assert next(iter(table.primary_key.columns)).name == "experiment_id"
    for name, is_unique, columns in _indexes(table):
        if name in _BY_TIME:
            assert not is_unique
        elif name in _SECOND:
            assert columns[1] == "experiment_id"
        else:
            assert columns[0] == "experiment_id", name


def test_the_exceptions_are_still_there() -> None:
    """None of them is a name that is gone."""
    assert {name for table in _TRAFFIC for name, _, _ in _indexes(table)} >= _SECOND | _BY_TIME


@pytest.mark.parametrize("name", sorted(_WRITES))
def test_a_write_of_a_group_names_the_experiment_of_every_row(name: str) -> None:
    """An insert has it as a column; an update or a deletion finds its rows by it; the experiment's own row is found by its id."""
    for statement in _WRITES[name].statements:
        verb, into = re.match(r"(INSERT INTO|UPDATE|DELETE FROM) (\w+)", statement).groups()  # type: ignore[union-attr]
        if into == "experiments":
            assert verb == "UPDATE"
            assert "t.id = v.id" in statement
        elif verb == "INSERT INTO":
            assert re.match(rf"INSERT INTO {into} \(experiment_id, ", statement)
        else:
            assert _NAMES_IT.search(statement), statement
    if _WRITES[name].taken:
        assert _NAMES_IT.search(_WRITES[name].taken)


@pytest.mark.parametrize("name", sorted(_QUERIES))
def test_a_lookup_of_a_group_names_the_experiment(name: str) -> None:
    """On both engines, in all words that it has; an experiment itself is found by its id or its key."""
    query = _QUERIES[name]
    for words in filter(None, (query.postgres, query.sqlite, query.of_one)):
        if "JOIN experiments t" in words:
            assert re.search(r"t\.(id|key) = w\.a", words)
        else:
            assert _NAMES_IT.search(words) or "t.experiment_id = $1" in words, words
