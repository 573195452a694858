"""Which releases may share a database: what migrations say of it, and what the database keeps."""

from __future__ import annotations

import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, create_engine

from service.storage.schema_compatibility import TABLE, Schema, compatible_with, record, recorded
from testing.expansion import MIGRATIONS, objections

_MIGRATION = """
revision = {revision!r}
down_revision = {before!r}
{says}

def upgrade():
    pass
"""


@pytest.fixture
def script(tmp_path: Path) -> ScriptDirectory:
    """Four migrations: the first two say nothing, the third leaves the second's releases room, the fourth would the first's."""
    versions = tmp_path / "versions"
    versions.mkdir()
    shutil.copy(MIGRATIONS.parent / "env.py", tmp_path)
    before = None
    says = {"0001": "", "0002": "", "0003": "compatible_with = '0002'", "0004": "compatible_with = '0001'"}
    for revision, said in says.items():
        (versions / f"{revision}.py").write_text(_MIGRATION.format(revision=revision, before=before, says=said))
        before = revision
    config = Config()
    config.set_main_option("script_location", str(tmp_path))
    return ScriptDirectory.from_config(config)


@pytest.mark.parametrize(("revision", "oldest"), [("0001", "0001"), ("0002", "0002"), ("0003", "0002"), ("0004", "0002")])
def test_the_most_demanding_migration_decides(script: ScriptDirectory, revision: str, oldest: str) -> None:
    """One that says nothing is for its own release and later ones; a later promise cannot take that back."""
    assert compatible_with(script, revision) == oldest


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    """An empty database."""
    return create_engine(f"sqlite:///{tmp_path}/any.db")


def test_what_is_written_down_follows_the_migrations(script: ScriptDirectory, engine: Engine) -> None:
    """Up and down, and nothing is left of it below the first one; a record of another revision counts as none."""
    with engine.connect() as connection:
        assert recorded(connection, "0002") == Schema("0002", None)
        for revision in ("0002", "0003", "0003", "0002"):
            record(connection, script, revision)
            assert recorded(connection, revision) == Schema(revision, "0002")
        assert recorded(connection, "0004") == Schema("0004", None)
        record(connection, script, None)
        assert not connection.dialect.has_table(connection, TABLE)
        assert recorded(connection, None) == Schema(None, None)


def test_a_migrated_database_has_the_record(sqlite_template: Path) -> None:
    """Of its newest migration."""
    with closing(sqlite3.connect(sqlite_template)) as rows:
        ((revision, oldest),) = rows.execute(f"SELECT revision, compatible_with FROM {TABLE}").fetchall()
        assert rows.execute("SELECT version_num FROM alembic_version").fetchall() == [(revision,)]
    assert re.fullmatch(r"\d{4}", oldest)
    assert oldest <= revision


@pytest.mark.parametrize("file", sorted(MIGRATIONS.glob("*.py")), ids=lambda path: path.stem)
def test_a_migration_that_lets_older_releases_go_on_takes_nothing_from_them(file: Path) -> None:
    """By the rule of decision 14."""
    assert objections(file.read_text()) == []


_EXPANDING = """
revision = "9002"
compatible_with = "9001"

def upgrade():
    op.create_table("news", sa.Column("id", sa.Integer, nullable=False))
    op.add_column("arms", sa.Column("note", sa.Text))
    op.add_column("arms", sa.Column("weight", sa.Float, nullable=False, server_default=sa.text("0")))
    op.create_index("ix_arms_note", "arms", ["note"])
    op.drop_index("ix_arms_old", "arms")
    op.execute("CREATE TYPE arms_row_9 AS (id bigint)")

def downgrade():
    op.drop_column("arms", "note")
"""
_TAKING = {
    'op.drop_column("arms", "note")': "drop_column",
    'op.drop_table("news")': "drop_table",
    'op.drop_index("uq_arms_note", "arms")': "drop_index",
    "op.drop_index(name)": "drop_index",
    'op.alter_column("arms", "note", nullable=False)': "alter_column",
    'op.create_unique_constraint("uq", "arms", ["note"])': "create_unique_constraint",
    'op.create_index("ix", "arms", ["note"], unique=True)': "unique",
    'op.add_column("arms", sa.Column("note", sa.Text, nullable=False))': "server_default",
    'op.execute("DROP TYPE arms_row_8")': "DROP",
    'op.execute(f"drop index {name}")': "DROP",
    'with op.batch_alter_table("arms") as batch_op:\n        batch_op.drop_constraint("uq")': "drop_constraint",
}


def test_what_only_adds_is_no_objection() -> None:
    """Tables, columns that may be left out, indexes, types. An index that is not unique may go; the way back may do anything."""
    assert objections(_EXPANDING) == []


@pytest.mark.parametrize("statement", _TAKING)
def test_what_takes_away_is_an_objection(statement: str) -> None:
    """Unless the migration promises nothing."""
    taking = _EXPANDING.replace('op.create_index("ix_arms_note", "arms", ["note"])', statement)
    (objection,) = objections(taking)
    assert _TAKING[statement] in objection
    assert objections(taking.replace('compatible_with = "9001"\n', "")) == []
