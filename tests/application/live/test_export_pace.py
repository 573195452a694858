"""How much of a machine exports take beside a busy worker."""

from __future__ import annotations

import random
import threading
import time

import pytest

from service.application.live import export_pace
from service.application.live.export_pace import PART, ExportPace, rest_after

# A row of CSV is soon written; a row group of Parquet comes after nine pieces without one; a point of the course is computed.
_PIECES = {"csv": [0.012, 0.005], "parquet": [0.008] * 8 + [0.06], "history": [0.2, 0.001, 0.4]}


def _worked(pieces: list[float], sharing: int, seconds: float) -> list[tuple[float, float]]:
    """When an export worked, from when until when, if its pieces take so long, over and over again."""
    clock, times = 0.0, list[tuple[float, float]]()
    while clock < seconds:
        for work in pieces:
            times.append((clock, clock + work))
            clock += work + rest_after(work, sharing)
    return times


def _within(times: list[tuple[float, float]], begin: float, end: float) -> float:
    return sum(max(0.0, min(until, end) - max(since, begin)) for since, until in times)


@pytest.mark.parametrize(
    "forms", [["csv"], ["parquet"], ["history"], ["csv", "parquet"], ["csv", "csv", "parquet", "history"]], ids=len
)
def test_all_exports_together_take_a_part_of_one_processor(forms: list[str]) -> None:
    """Over any stretch of time, but for a piece of each: whatever they make, and however many they are."""
    times = [_worked(_PIECES[form], len(forms), 200.0) for form in forms]
    for begin in (0.0, 3.3, 17.0, 100.0):
        for length in (1.0, 10.0, 60.0):
            work = sum(_within(one, begin, begin + length) for one in times)
            assert work <= PART * length + sum(max(_PIECES[form]) for form in forms)
    whole = sum(_within(one, 0.0, 200.0) for one in times)
    assert whole == pytest.approx(PART * 200.0, rel=0.1)  # and it does go on


def test_a_database_that_stands_still_does_not_stop_an_export() -> None:
    """No rest is so long that whoever waits for the file would take it for dead."""
    draws = random.Random(5)  # noqa: S311 - the same numbers every time
    longest = max(rest_after(draws.uniform(0.0, 3_600.0), sharing) for sharing in range(1, 5) for _ in range(100))
    assert longest == rest_after(3_600.0, 1)
    assert longest < 60.0  # then proxies cut it off


def _rested(pace: ExportPace, waited: float) -> float:
    began = time.monotonic()
    pace.rest(waited)
    return time.monotonic() - began


def test_it_rests_for_what_it_did_while_its_worker_is_busy() -> None:
    """What it waited for the database is work as its own is; what it took to start is not, nor what it did alone."""
    pace, alone = ExportPace(), 1_000.0
    pace.rest(0.0)
    assert _rested(pace, alone) < rest_after(alone, 1)
    pace.tell(1)
    assert _rested(pace, alone + 0.01) >= rest_after(0.01, 1)
    pace.tell(3)
    assert _rested(pace, alone + 0.02) >= rest_after(0.01, 3) > 3 * rest_after(0.01, 1)
    just_begun = ExportPace()
    just_begun.tell(1)
    assert _rested(just_begun, alone) < rest_after(alone, 1)


def test_its_own_processor_time_is_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """That of its process; seconds in which it waits to send count for nothing."""
    monkeypatch.setattr(export_pace, "_LONGEST_REST_SECONDS", 60.0)
    pace = ExportPace()
    pace.tell(1)
    pace.rest(0.0)
    began = time.process_time()
    while (worked := time.process_time() - began) < 0.02:
        pass
    time.sleep(0.05)
    assert rest_after(worked, 1) <= _rested(pace, 0.0)


def test_a_rest_ends_when_the_worker_is_busy_no_more() -> None:
    """It does not sleep on for what it did beside others."""
    pace = ExportPace()
    pace.tell(1)
    pace.rest(0.0)
    rests = list[float]()
    resting = threading.Thread(target=lambda: rests.append(_rested(pace, 1_000.0)))
    resting.start()
    pace.tell(0)
    resting.join()
    assert rests[0] < rest_after(1_000.0, 1)
