"""What else runs on a machine is told from what a measurement takes itself."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from testing.torture.overload import is_crowded, others_seconds

pytestmark = pytest.mark.process
_SPUN = 0.5
_SPIN = f"import time\nwhile time.process_time() < {_SPUN}: pass\nprint(flush=True); input()"


@contextmanager
def _spun(*before: str) -> Iterator[None]:
    """A process that has taken its time and is still there."""
    with subprocess.Popen([*before, sys.executable, "-I", "-c", _SPIN], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        process.stdout.readline()
        yield
        process.stdin.write(b"\n")


def test_what_it_has_started_is_no_other_work() -> None:
    """As long as it lives: its time is nobody's any more when it has ended."""
    with _spun():
        beside = others_seconds()
    assert others_seconds() - beside > 0.8 * _SPUN


def test_what_others_take_is_theirs() -> None:
    """A process that has left its family is one of them."""
    before = others_seconds()
    with _spun("setsid", "--fork"):
        assert others_seconds() - before > 0.8 * _SPUN


def test_a_machine_with_other_work_is_crowded() -> None:
    """From a fifth of a core on; results of before do not say."""
    assert [is_crowded(step) for step in ({"others_cores": 0.1}, {"others_cores": 0.5}, {})] == [False, True, False]
