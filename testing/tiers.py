"""What a test needs beyond this process, as marks: set by the fixtures that it uses, and held to while it runs.

A plugin of pytest. `process`: it talks to a second process; `browser`: it looks at the dashboard in Chromium. Three more marks
are set by hand, because no fixture tells: `study` for many simulated runs, `bulk` for a million rows, `serial` for what measures
time. `make test-fast` leaves all five out; `make test` runs what is `serial` by itself, after everything else has run in three
processes. `containers`, by hand, too, needs a Docker engine of its own: only `make test-compose` runs it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from coverage import Coverage
from xdist.scheduler import LoadScopeScheduling

_PROCESS = re.compile(r"\b(Server|Postgres)\b")
_BROWSER = re.compile(r"\bBrowser\b")
_ENGINE = re.compile(r"(?<=[\[-])(sqlite|postgresql)(?=[\]-])")
_STARTS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system"}
_started: list[str] = []
_LEFT_OUT = pytest.StashKey[int]()


def pytest_configure(config: pytest.Config) -> None:
    """Say what the marks mean, and begin to watch."""
    for meaning in (
        "process: needs a second process (set by the fixtures, by hand where a test starts one itself)",
        "browser: needs Chromium (set by the fixtures)",
        "study: plays many simulated runs",
        "bulk: fills tables with a million rows",
        "serial: measures time, so nothing else may run beside it",
        "containers: brings the container files up on a Docker engine of its own",
    ):
        config.addinivalue_line("markers", meaning)
    # Not beside coverage, whose tracer starts in every thread: a hook in Python could be interrupted by another thread just then,
    # which Python 3.11 refuses, and no hook is ever taken off again. The quick tier runs without it and watches.
    if not config.pluginmanager.hasplugin("_cov") and Coverage.current() is None:
        sys.addaudithook(_hear)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark every test, before any is selected by its marks."""
    for item in items:
        if isinstance(item, pytest.Function):
            _mark(item)
    if hasattr(config, "workerinput"):
        # The longer ones first, the browser's as the longest of all, so that the processes end at about the same time.
        items.sort(key=lambda item: [item.get_closest_marker(mark) is None for mark in ("browser", "process")])


def made_for(item: pytest.Function) -> str:
    """The types of all that the fixtures of a test return."""
    fixtures = [defined[-1] for defined in item._fixtureinfo.name2fixturedefs.values()]  # noqa: SLF001 - nothing public has it
    return " ".join(str(fixture.func.__annotations__.get("return")) for fixture in fixtures)


def _mark(item: pytest.Function) -> None:
    made = made_for(item)
    engine = item.callspec.params.get("engine", "") if hasattr(item, "callspec") else ""
    if _BROWSER.search(made):
        item.add_marker("browser")
    if _BROWSER.search(made) or _PROCESS.search(made) or engine == "postgresql":
        item.add_marker("process")


def engine_of(nodeid: str) -> str:
    """The engine that a case of a test is for, or nothing."""
    named = _ENGINE.search(nodeid)
    return named[0] if named else ""


class _ByFixtures(LoadScopeScheduling):  # type: ignore[misc] # ships no types
    """Tests that share fixtures run in one process: those of one file and engine, or of one folder with fixtures of its own."""

    def _split_scope(self, nodeid: str) -> str:
        name, _, test = nodeid.partition("::")
        file = Path(name)
        folder = self.config.rootpath / file.parent
        own = (folder / "conftest.py").exists() and (folder.parent / "__init__.py").exists()
        return f"{file.parent if own else file} {engine_of(test)}"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:  # noqa: ANN401 - pytest-xdist's own
    """How several processes share the tests, in their order."""
    config.option.loadscopereorder = False
    return _ByFixtures(config, log)


def _hear(event: str, _: tuple[Any, ...]) -> None:
    """Note that a process is started, whoever starts it."""
    if event in _STARTS:
        _started.append(event)


def pytest_runtest_logstart() -> None:
    """A test begins."""
    _started.clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[Any]:
    """Fail a test without the mark that started a process."""
    result = yield
    if _started and not item.get_closest_marker("process"):
        pytest.fail(f"{item.nodeid} starts a process: it needs the mark `process`.", pytrace=False)
    return result


def pytest_deselected(items: list[pytest.Item]) -> None:
    """Count what is left out. With several processes pytest does not say it, so the one that reports is told."""
    told = getattr(items[0].config, "workeroutput", None) if items else None
    if told is not None:
        told["left_out"] = told.get("left_out", 0) + len(items)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:  # noqa: ANN401 - pytest-xdist has no type for it
    """Take over how many a process of pytest-xdist left out; each finds the same."""
    node.config.stash[_LEFT_OUT] = getattr(node, "workeroutput", {}).get("left_out", 0)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Tell how many tests the marks left out."""
    if left_out := config.stash.get(_LEFT_OUT, 0):
        terminalreporter.write_line(f"{left_out:,} tests were left out by their marks.")
