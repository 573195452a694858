"""The rule for a migration beside which older releases go on: it adds, and takes nothing away that they rely on (decision 14)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

MIGRATIONS = Path(__file__).parents[1] / "migrations/versions"
# Of alembic's operations, those that releases which know nothing of them do not notice.
_ADDING = {"add_column", "create_table", "create_index", "execute", "get_bind", "bulk_insert"}
# The name of an index that is not unique: nothing rests on it but how soon something is found.
_CARRIES_READS = "'ix_"
_TAKING = re.compile(r"\b(DROP|RENAME|TRUNCATE|DELETE FROM|SET NOT NULL|ADD CONSTRAINT|CREATE UNIQUE)\b", re.IGNORECASE)


def objections(source: str) -> list[str]:
    """What a migration's way up does to releases that it promises room; nothing if it promises none."""
    tree = ast.parse(source)
    named = {name.id for node in tree.body if isinstance(node, ast.Assign) for name in node.targets if isinstance(name, ast.Name)}
    if "compatible_with" not in named:
        return []
    (upgrade,) = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "upgrade"]
    return [objection for node in ast.walk(upgrade) if isinstance(node, ast.Call) for objection in _of_call(node)]


def _of_call(call: ast.Call) -> Iterator[str]:
    if not isinstance(call.func, ast.Attribute) or not isinstance(call.func.value, ast.Name):
        return
    holder, operation = call.func.value.id, call.func.attr
    if not (holder == "op" or holder.startswith("batch")) or operation == "batch_alter_table":
        return
    if operation == "drop_index" and ast.unparse(call.args[0]).startswith(_CARRIES_READS):
        return
    if operation not in _ADDING:
        yield f"line {call.lineno}: {operation} is no addition"
    elif operation == "add_column" and not _may_be_left_out(call):
        yield f"line {call.lineno}: a column that must be given needs a server_default, older releases do not give it"
    elif operation == "create_index" and any(word.arg == "unique" for word in call.keywords):
        yield f"line {call.lineno}: a unique index refuses what older releases write"
    elif operation == "execute" and (found := _TAKING.search(ast.unparse(call))):
        yield f"line {call.lineno}: {found[0].upper()} is no addition"


def _may_be_left_out(add_column: ast.Call) -> bool:
    """May its column be missing from an INSERT?"""
    (column,) = [one for one in ast.walk(add_column) if isinstance(one, ast.Call) and ast.unparse(one.func).endswith("Column")]
    given = {word.arg: ast.unparse(word.value) for word in column.keywords}
    return given.get("nullable") != "False" or "server_default" in given
