"""The checker finds what it is there for: every kind of loss is planted, in the database or in what a client saw."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from testing.databases import NewDatabase
from testing.rows import Rows
from testing.server import Server
from testing.torture.calls import Call
from testing.torture.checker import PROMISES, check
from testing.torture.crowd import Crowd, create_experiments
from testing.torture.stored import read_stored
from testing.torture.workloads import EXPERIMENTS

pytestmark = pytest.mark.process
_CALLS = 400
_LAST = "(SELECT max(draw) FROM assignments WHERE experiment_id = 1 AND status = 'rewarded' AND reward > 0)"


@dataclass(frozen=True)
class Run:
    """What clients did, the database afterwards, and one from before they were through."""

    calls: list[Call]
    file: Path
    earlier: Path


@pytest.fixture(scope="module")
def run(sqlite_databases: NewDatabase, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """All three workloads for a moment, nothing broken."""
    url = sqlite_databases()
    folder = tmp_path_factory.mktemp("run")
    file, earlier, after = Path(url.removeprefix("sqlite:///")), folder / "earlier.db", folder / "after.db"
    with Server(url) as server:
        create_experiments(server.url)
        with Crowd([server.url], threads=2) as crowd:
            crowd.wait_until_busy(_CALLS)
            _back_up(file, earlier)
            crowd.wait_until_busy(3 * _CALLS)
            calls = crowd.call_back()
        _back_up(file, after)
    return Run(calls, after, earlier)


def _back_up(file: Path, copy: Path) -> None:
    with closing(sqlite3.connect(file)) as read, closing(sqlite3.connect(copy)) as written:
        read.backup(written)


def _broken(calls: list[Call], file: Path, experiment: str = "ledger") -> set[str]:
    return {anomaly.promise for anomaly in check(calls, read_stored(f"sqlite:///{file}", experiment))}


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_nothing_is_found_where_nothing_is_broken(run: Run, experiment: str) -> None:
    """Every workload leaves something to compare, and everything fits."""
    own = [call for call in run.calls if call.experiment == experiment]
    assert sum(call.is_acknowledged for call in own) > 20
    assert check(own, read_stored(f"sqlite:///{run.file}", experiment)) == []


_DOUBLED_DRAW = """
INSERT INTO assignments SELECT experiment_id, (SELECT max(draw) + 1 FROM assignments WHERE experiment_id = 1), token + 1,
    sequence, arm, unit, reason, epoch, created_at, expires_at, expiry_reward, status, reward, closed, rewarded_at, due_at, NULL
FROM assignments WHERE experiment_id = 1 AND draw = 7
"""
_DOUBLED_REWARD = f"""
INSERT INTO events SELECT experiment_id, (SELECT max(sequence) + 1 FROM events WHERE experiment_id = 1), kind, at, arm, draw,
    epoch, reason, expires_at, expiry_reward, status_before, reward_before, closed_before, status_after, reward_after,
    closed_after, details
FROM events WHERE experiment_id = 1 AND kind = 'reward' AND draw = {_LAST}
"""
_IN_THE_DATABASE = {
    "a lost reward": (
        f"UPDATE assignments SET status = 'pending', reward = NULL WHERE experiment_id = 1 AND draw = {_LAST}",
        "acknowledged rewards are stored",
    ),
    "a lost observation": ("DELETE FROM observations WHERE experiment_id = 1", "acknowledged rewards are stored"),
    "a lost draw": (
        "DELETE FROM assignments WHERE experiment_id = 1 AND draw = 7",
        "acknowledged draws are stored",
        "draws and events have no gap",
    ),
    "a draw that became another arm's": (
        "UPDATE assignments SET arm = (arm + 1) % 4 WHERE experiment_id = 1 AND draw = 7",
        "acknowledged draws are stored",
        "statistics equal rows",
    ),
    "a draw that expired where none does": (
        "UPDATE assignments SET status = 'expired' WHERE experiment_id = 1 AND status = 'pending'",
        "acknowledged rewards are stored",
    ),
    "a doubled draw": (
        _DOUBLED_DRAW,
        "an operation draws once",
    ),
    "half a batch": (
        "DELETE FROM assignments WHERE experiment_id = 1 AND unit LIKE '%-%-0' AND idempotency_key IS NULL",
        "a batch is whole",
    ),
    "a draw for nobody": (
        "UPDATE assignments SET unit = 'nobody' WHERE experiment_id = 1 AND draw = 7",
        "nothing is made up",
    ),
    "a reward that counts twice": (
        _DOUBLED_REWARD,
        "a reward counts once",
        "draws and events have no gap",
    ),
    "a wrong mean": (
        "UPDATE arms SET reward_sum = '1' WHERE experiment_id = 1 AND position = 0",
        "statistics equal rows",
        "replay finds no difference",
    ),
    "a time that goes back": (
        "UPDATE events SET at = at - 1000000 WHERE experiment_id = 1 AND sequence = 9",
        "later comes after",
    ),
}


@pytest.mark.parametrize("planted", _IN_THE_DATABASE)
def test_what_is_planted_in_the_database_is_found(run: Run, planted: str, tmp_path: Path) -> None:
    """And named as what it is."""
    statement, *promises = _IN_THE_DATABASE[planted]
    copy = tmp_path / "bestarm.db"
    shutil.copy(run.file, copy)
    with closing(sqlite3.connect(copy)) as rows, rows:
        assert rows.execute(statement).rowcount > 0
    assert set(promises) <= _broken(run.calls, copy)


def test_a_database_from_before_is_found(run: Run) -> None:
    """As after a restore, or a failover to a standby that was behind: it is whole by itself, but lacks what was acknowledged."""
    found = _broken(run.calls, run.earlier)
    assert {"acknowledged draws are stored", "a look is its version"} <= found
    assert not found & {"statistics equal rows", "replay finds no difference", "draws and events have no gap"}


def _looks(calls: list[Call]) -> list[int]:
    return [place for place, call in enumerate(calls) if (call.kind, call.experiment, call.status) == ("look", "ledger", 200)]


def _wrong_mean(calls: list[Call]) -> None:
    place = _looks(calls)[-1]
    arms = [[*arm[:4], arm[4] + 0.25] for arm in calls[place].answer["arms"]]
    calls[place] = replace(calls[place], answer=calls[place].answer | {"arms": arms})


def _older_version(calls: list[Call]) -> None:
    first, *_, last = _looks(calls)
    calls[last] = replace(calls[last], answer=calls[first].answer)


def _first_answer_twice(calls: list[Call]) -> None:
    calls.extend([replace(call, replayed=False) for call in calls if call.replayed and call.status == 201])


def _refused_though_the_same(calls: list[Call]) -> None:
    again = next(call for call in calls if call.replayed and (call.experiment, call.status) == ("repeated", 201))
    calls.append(replace(again, status=422, answer=None, replayed=False, trouble="idempotency_key_reused"))


def _draws_in_another_order(calls: list[Call]) -> None:
    asks = [place for place, call in enumerate(calls) if (call.kind, call.experiment, call.status) == ("ask", "ledger", 201)]
    first, *_, last = asks
    one, other = calls[first], calls[last]
    calls[first], calls[last] = replace(one, answer=other.answer), replace(other, answer=one.answer)


_IN_THE_CALLS: dict[str, tuple[Callable[[list[Call]], None], str, str]] = {
    "a wrong mean": (_wrong_mean, "ledger", "a look is its version"),
    "a version that goes back": (_older_version, "ledger", "a look is current"),
    "a first answer that is given twice": (_first_answer_twice, "repeated", "a repeat is the first answer"),
    "a repeat that is refused as another body": (_refused_though_the_same, "repeated", "a repeat is the first answer"),
    "draws in another order": (_draws_in_another_order, "ledger", "later comes after"),
}


@pytest.mark.parametrize("planted", _IN_THE_CALLS)
def test_what_a_client_should_not_have_seen_is_found(run: Run, planted: str) -> None:
    """The database is whole."""
    change, experiment, promise = _IN_THE_CALLS[planted]
    calls = list(run.calls)
    change(calls)
    assert promise in _broken(calls, run.file, experiment)


def test_what_is_read_is_of_one_version(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sweeper goes on when the clients have left: what it did while the rows were read is no anomaly."""
    copy, sweeps = tmp_path / "bestarm.db", iter([1, 2])
    shutil.copy(run.file, copy)

    class Swept(Rows):
        def query(self, statement: str, **values: Any) -> list[tuple[Any, ...]]:  # noqa: ANN401 - any parameter
            found = super().query(statement, **values)
            if "FROM observations" in statement and next(sweeps, None) is not None:
                with closing(sqlite3.connect(copy)) as rows, rows:
                    rows.execute("UPDATE experiments SET version = version + 1 WHERE key = 'expiring'")
            return found

    before = read_stored(f"sqlite:///{copy}", "expiring").version
    monkeypatch.setattr("testing.torture.stored.Rows", Swept)
    assert read_stored(f"sqlite:///{copy}", "expiring").version == before + 2


def test_every_promise_has_been_broken() -> None:
    """A check that nothing has ever failed may check nothing."""
    planted = {promise for _, *promises in _IN_THE_DATABASE.values() for promise in promises}
    assert planted | {promise for *_, promise in _IN_THE_CALLS.values()} == set(PROMISES)
