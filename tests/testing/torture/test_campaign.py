"""What a campaign counts: answers that nobody should have got, however harmless they look, and what was really broken."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import count
from random import Random

import pytest

from testing.databases import NewDatabase
from testing.torture.calls import Call, CallKind
from testing.torture.campaign import play, play_in_turn, unexpected_answers
from testing.torture.fault import Fault
from testing.torture.stage import Service, Stage


def _call(kind: CallKind, status: int | None, trouble: str = "", workload: str = "ledger") -> Call:
    return Call(
        client="c", workload=workload, experiment="e", kind=kind, operation="o", sent={}, began=0, ended=1, at=0,
        status=status, trouble=trouble,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "status", "trouble"),
    [
        ("ask", 500, "internal_error"),
        ("ask", 404, "experiment_not_found"),
        ("tell", 404, "assignment_not_found"),
        ("tell", 409, "reward_conflict"),
        ("tell", 422, "idempotency_key_reused"),
        ("look", 401, "unauthorized"),
        ("ask", 422, "validation_failed"),
        ("ask", 422, "idempotency_key_reused"),
        ("ask", 408, "request_timeout"),
    ],
)
def test_what_nobody_provoked_is_unexpected(kind: CallKind, status: int, trouble: str) -> None:
    """A refusal is an answer like any other: whoever gets one without reason has lost something."""
    calls = [_call(kind, status, trouble), _call(kind, status, trouble), _call("ask", 201), _call("ask", None, "TimeoutError")]
    assert unexpected_answers(calls, may_stop=True) == [f"ledger: {kind} {status} {trouble}, 2 times"]


def test_what_a_workload_provokes_is_expected() -> None:
    """A key with another body, a database that is away; and experiments that are stopped, where they are."""
    reused = _call("ask", 422, "idempotency_key_reused", "idempotence")
    calls = [reused, _call("ask", 503, "database_unavailable"), _call("look", 200)]
    stopped = _call("ask_many", 409, "experiment_not_running")
    assert unexpected_answers(calls, may_stop=False) == []
    assert unexpected_answers([*calls, stopped], may_stop=True) == []
    assert unexpected_answers([*calls, stopped], may_stop=False) == ["ledger: ask_many 409 experiment_not_running, 1 times"]


@pytest.mark.process
@pytest.mark.serial
def test_only_what_broke_something_counts_and_each_is_held_as_long_as_it_says(sqlite_databases: NewDatabase) -> None:
    """A fault that found nothing to break is played again, a few times; logs of services that began again are read once."""
    held: dict[str, list[float]] = {"misses": [], "breaks": []}
    turns = count(1)

    def miss(_stage: Stage, _dice: Random, hold: float) -> bool:
        held["misses"].append(hold)
        return next(turns) % 2 == 0

    def break_(stage: Stage, _dice: Random, hold: float) -> None:
        held["breaks"].append(hold)
        stage.services[0].server.kill()
        stage.services[0].start_again()

    faults = [Fault("misses", "sqlite", miss, 10.0), Fault("breaks", "sqlite", break_, 2.0, at_least=20)]
    idle = Fault("always misses", "sqlite", lambda *_: False, pause_seconds=0.0)
    url = sqlite_databases()
    service = Service(url)
    try:
        stage = Stage("sqlite", url, [service])
        outcome = play_in_turn(stage, faults, "c.", 0.0, 0.05)
        logged = stage.logged({})
        with pytest.raises(AssertionError, match="always misses breaks nothing"):
            play_in_turn(stage, [idle], "i.", 0.0, 1.0)
    finally:
        service.close()
    assert outcome.played == {"misses": 1, "breaks": len(held["breaks"])}
    assert (len(held["misses"]), len(held["breaks"])) == (2, 1)
    assert (set(held["misses"]), set(held["breaks"])) == ({0.5}, {0.1})
    assert outcome.is_good, outcome
    assert outcome.writes < outcome.acknowledged < outcome.calls
    assert logged.count('"event": "serving"') == 1 + outcome.played["breaks"]
    assert not any(log.exists() for log in service.logs)


@pytest.mark.process
@pytest.mark.serial
def test_a_fault_that_cannot_be_played_keeps_no_other_from_it(sqlite_databases: NewDatabase) -> None:
    """It fails the campaign, and says why; what it left behind is left, and the others have a new stage."""
    played_on = list[str]()

    @contextmanager
    def staged() -> Iterator[Stage]:
        url = sqlite_databases()
        with closing(Service(url)) as service:
            yield Stage("sqlite", url, [service])

    def refuse(stage: Stage, _dice: Random, _hold: float) -> None:
        played_on.append(stage.database_url)
        raise RuntimeError("no such thing here")

    def note(stage: Stage, _dice: Random, _hold: float) -> None:
        played_on.append(stage.database_url)

    faults = [Fault("refuses", "sqlite", refuse), Fault("notes", "sqlite", note)]
    failed, whole = play(staged, lambda _: faults, 0.0, lambda _: None)
    assert failed.unexpected == ["it could not be played on: RuntimeError('no such thing here')"]
    assert (failed.is_good, failed.injections) == (False, 0)
    assert (whole.is_good, whole.injections) == (True, 1)
    assert len(set(played_on)) == len(played_on) == 2
