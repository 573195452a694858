"""Tests are found by path: tests/ mirrors service/; behaviour over HTTP or of several workers has folders of its own."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

from tests.tested_by import TESTED_BY

_ROOT = Path(__file__).parents[1]
_SERVICE = _ROOT / "service"
# Behaviour that is no single module's: over HTTP, of the client, of several workers, of pages and docs, of what does not ship.
_BEHAVIOUR = (
    "openfeature/",
    "api",
    "client",
    "live",
    "web/dashboard",
    "containers/",
    "deployment/",
    "docs",
    "scripts",
    "studies",
    "testing",
    "examples/",
    "typescript/",
)
# Tests named after something that several modules make together.
_FAMILIES = {
    "engine/test_walk.py": "how an ask passes the rooms",
    "inference/test_baselines_lockstep.py": "the baselines in the lockstep of the study of verdicts",
    "inference/test_coverage.py": "what the intervals promise",
    "inference/test_lockstep.py": "the coverage study's own arrays",
    "inference/test_martingales.py": "why the intervals hold",
    "inference/test_verdict_baselines.py": "the study of draws until the verdict",
    "policy/test_fast_weights.py": "interpolation and memory against the direct formula",
    "policy/test_policy_contract.py": "every policy",
    "simulation/kernels/test_elimination.py": "the baselines that drop arms",
    "simulation/kernels/test_top_two.py": "the baselines with a leader and a challenger",
    "simulation/test_plan_reference.py": "what plans are held against",
    "storage/test_distribution.py": "what a cluster would shard by",
    "storage/test_sqlite_read_only.py": "the groups and the pool, where the file was read-only",
    "test_layout.py": "this file",
    "test_package.py": "the wheel",
}


def _modules() -> set[str]:
    return {str(path.relative_to(_SERVICE)) for path in _SERVICE.rglob("*.py") if path.name != "__init__.py"}


def _tests() -> set[str]:
    tests = _ROOT / "tests"
    return {str(path.relative_to(tests)) for path in tests.rglob("test_*.py")}


def test_a_test_stands_where_its_module_does() -> None:
    """service/engine/ledger.py is tested by tests/engine/test_ledger.py."""
    modules = _modules()
    strays = [
        name
        for name in _tests()
        if not name.startswith(_BEHAVIOUR) and name not in _FAMILIES and name.replace("test_", "", 1) not in modules
    ]
    assert strays == []


def test_a_module_has_a_test_by_its_path_or_by_the_table() -> None:
    """Whoever changes a module finds what holds it to its promises: at its own path, or where tests/tested_by.py says."""
    mirrored = {name.replace("test_", "", 1) for name in _tests()}
    modules = _modules()
    assert sorted(modules - mirrored - TESTED_BY.keys()) == []
    assert sorted(TESTED_BY.keys() - modules) == []  # gone, or moved
    assert sorted(TESTED_BY.keys() & mirrored) == []  # tested at its own path by now


def test_the_tests_of_the_table_are_there() -> None:
    """Each names one test of one file."""
    tests = _ROOT / "tests"
    for module, name in TESTED_BY.items():
        file, _, function = name.partition("::")
        assert f"def {function}(" in (tests / file).read_text(), (module, name)


def test_the_families_are_all_there() -> None:
    """An exception that is none any more must go."""
    assert set(_FAMILIES) - _tests() == set()


def test_no_two_modules_have_one_name() -> None:
    """So that a name in a traceback, a search or a review means one thing."""
    names = Counter(Path(name).name for name in _modules())
    assert [name for name, times in names.items() if times > 1] == []


def test_modules_and_functions_keep_their_proportion() -> None:
    """No module above 350 lines, no function above 60: what is longer holds two things. So it is in the client."""
    paths = [path for folder in ("service", "client/bestarm") for path in sorted((_ROOT / folder).rglob("*.py"))]
    assert [path.name for path in paths if len(path.read_text().splitlines()) > 350] == []
    assert [found for path in paths for found in _long_functions(path)] == []


def _long_functions(path: Path) -> list[str]:
    nodes = ast.walk(ast.parse(path.read_text()))
    functions = (node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return [f"{path.name}: {node.name}" for node in functions if (node.end_lineno or 0) - node.lineno >= 60]
