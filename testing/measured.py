"""What coverage follows: enough to see which lines are passed, because a test takes up to twice as long when it is followed.

A plugin of pytest. Of each test the first case is followed, on each engine: a hundred more rows of a table pass the same lines.
Of a test that talks to the service of a fixture, its own side of the conversation is not; the service is, if the fixture says so
(`testing/server.py`). The programs that a test starts are followed in its first case. Studies and millions of rows never are.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

import pytest
from coverage import Coverage

from testing.tiers import engine_of, made_for

_FIRST = pytest.StashKey[bool]()
_FIRST_OF_ENGINE = pytest.StashKey[bool]()
_LONG = ("browser", "study", "bulk")
# There the client is what is tested, or what a service's processes do is done by the test itself.
_OWN_SIDE = ("tests/client/", "tests/web/exports/")
_SERVICE = re.compile(r"\bServer\b")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Choose, of what is selected; every process that shares the tests collects them all, and chooses alike."""
    seen: set[tuple[str, ...]] = set()
    for item in items:
        name = item.nodeid.partition("[")[0]
        for key, case in ((_FIRST, (name,)), (_FIRST_OF_ENGINE, (name, engine_of(item.nodeid)))):
            item.stash[key] = case not in seen
            seen.add(case)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[Any]:
    """Stop following for one test, its fixtures included."""
    paused = [] if _is_followed(item) else _stop_all()
    result = yield
    for one in reversed(paused):
        one.start()
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[Any]:
    """Nor are the programs followed that the test starts; those of its fixtures are for others, too."""
    # A study that is followed takes a hundred times as long.
    is_followed = item.stash[_FIRST] and not item.nodeid.startswith("tests/studies/")
    names = [] if is_followed else [name for name in os.environ if name.startswith("COVERAGE_")]
    hidden = {name: os.environ.pop(name) for name in names}
    try:
        return (yield)
    finally:
        os.environ.update(hidden)


def _is_followed(item: pytest.Item) -> bool:
    if not item.stash[_FIRST_OF_ENGINE] or any(map(item.get_closest_marker, _LONG)):
        return False
    if item.nodeid.startswith(_OWN_SIDE):
        return True
    return not (isinstance(item, pytest.Function) and _SERVICE.search(made_for(item)))


def _stop_all() -> list[Coverage]:
    """Whatever measures this process, the last one to start first."""
    stopped = []
    while (running := Coverage.current()) is not None:
        running.stop()
        stopped.append(running)
    return stopped
