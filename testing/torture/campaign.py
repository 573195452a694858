"""A campaign: one fault after the other under continuous load, each injected again and again, and what it came to."""

from __future__ import annotations

import json
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import cycle
from random import Random

from testing.torture import failover_faults, other_faults, postgres_faults, process_faults
from testing.torture.calls import Call
from testing.torture.checker import Anomaly, check
from testing.torture.crowd import Crowd, create_experiments
from testing.torture.effects import operations
from testing.torture.fault import Fault
from testing.torture.stage import Stage
from testing.torture.stored import read_stored
from testing.torture.workloads import EXPERIMENTS

_LOST = {"acknowledged draws are stored", "acknowledged rewards are stored"}
_DOUBLED = {"an operation draws once", "a reward counts once", "a repeat is the first answer"}
# Of a stack trace: what was raised, and the calls that led there.
_TOLD_LINES = 12
# So often in a row a fault may find nothing to break.
_MOST_MISSES = 20
_GOOD, _AWAY = {200, 201}, {None, 503}
# What else may be answered: by kind of call, status and code. A key is used again by one workload alone.
_REUSED_KEY = ("ask", 422, "idempotency_key_reused")
_NOT_RUNNING = {(kind, 409, "experiment_not_running") for kind in ("ask", "ask_many")}


@dataclass(slots=True)
class Outcome:
    """What one fault came to."""

    fault: str
    engine: str
    played: Counter[str] = field(default_factory=Counter)
    """How often each of its faults was injected."""
    calls: int = 0
    in_flight: int = 0
    """Calls that were under way when a fault began."""
    acknowledged: int = 0
    writes: int = 0
    """What was acknowledged and changes something, each once however often it was sent."""
    hung_up: int = 0
    """Asks of the indefinite workload that did not wait for their answer; so many of them took effect:"""
    hung_up_took_effect: int = 0
    unanswered: int = 0
    """Calls that ended without an answer, or with a 5xx; those that hang up by themselves are not counted."""
    took_effect: int = 0
    """Asks without an answer that had been written, as their retries were told."""
    lost: int = 0
    doubled: int = 0
    other: int = 0
    anomalies: list[Anomaly] = field(default_factory=list)
    recoveries: list[float] = field(default_factory=list)
    """Seconds from the end of each until every service answered, or had all its workers back."""
    unexpected: list[str] = field(default_factory=list)
    """Answers that this workload should not have got, and defects of ours that were logged."""

    @property
    def injections(self) -> int:
        """How often something was broken."""
        return self.played.total()

    @property
    def is_good(self) -> bool:
        """Was every promise kept?"""
        return not self.anomalies and not self.unexpected

    def details(self) -> dict[str, object]:
        """What broke, and whether every promise was kept."""
        return {
            "is_good": self.is_good,
            "anomalies": sorted(Counter(anomaly.promise for anomaly in self.anomalies).items()),
            "examples": [anomaly.detail[:300] for anomaly in self.anomalies[:3]],
            "unexpected": self.unexpected[:5],
        }

    def row(self) -> dict[str, object]:
        """For the table."""
        times = self.recoveries or [0.0]
        return {
            "fault": self.fault,
            "engine": self.engine,
            "injections": self.injections,
            "calls": self.calls,
            "in_flight": self.in_flight,
            "acknowledged": self.acknowledged,
            "writes": self.writes,
            "unanswered": self.unanswered,
            "took_effect": self.took_effect,
            "hung_up": self.hung_up,
            "hung_up_took_effect": self.hung_up_took_effect,
            "lost": self.lost,
            "doubled": self.doubled,
            "other_anomalies": self.other,
            "recovery_median_seconds": round(statistics.median(times), 3),
            "recovery_worst_seconds": round(max(times), 3),
        }


def faults_of(stage: Stage) -> list[Fault]:
    """All faults that a stage can play."""
    return [*service_faults(stage), *database_faults(stage)]


def service_faults(stage: Stage) -> list[Fault]:
    """Those of the services, their clocks and what they are asked."""
    if stage.pair is not None:
        return []
    return [*process_faults.faults(stage.engine), *other_faults.traffic_faults(stage)]


def database_faults(stage: Stage) -> list[Fault]:
    """Those of what the services stand on, and of the way there."""
    if stage.pair is not None:
        return failover_faults.faults(stage.pair)
    return postgres_faults.faults(stage) if stage.postgres is not None else other_faults.sqlite_faults(stage)


def play(
    staged: Callable[[], AbstractContextManager[Stage]],
    choose: Callable[[Stage], list[Fault]],
    seconds: float,
    say: Callable[[str], None],
    scale: float = 1.0,
) -> Iterator[Outcome]:
    """Each fault for its part of the time, as long and at least as often as in the full campaign, or by this scale.

    Where one cannot be played to its end, a promise is broken; the others are played on a new stage.
    """
    place, is_over = 0, False
    while not is_over:
        with staged() as stage:
            faults = choose(stage)
            weight, failed = sum(fault.weight for fault in faults), False
            while place < len(faults) and not failed:
                fault = faults[place]
                try:
                    outcome = play_in_turn(stage, [fault], f"s{place}.", seconds * fault.weight / weight, scale)
                except Exception as failure:  # noqa: BLE001 - whatever it is, it stands in the result and fails the campaign
                    failed = True
                    outcome = Outcome(fault.name, fault.engine, unexpected=[f"it could not be played on: {failure!r:.2000}"])
                place += 1
                say(f"{outcome.row()} {outcome.anomalies[:3]} {outcome.unexpected[:3]}")
                yield outcome
            is_over = place == len(faults)


def play_in_turn(stage: Stage, faults: Sequence[Fault], prefix: str, seconds: float, scale: float) -> Outcome:
    """These faults one after the other for so long under one load, each at least once."""
    outcome = Outcome(", ".join(fault.name for fault in faults), faults[0].engine)
    stage.prefix = prefix
    stage.wait_until_whole()
    create_experiments(stage.urls[0], prefix)
    dice = Random(outcome.fault)  # noqa: S311 - it plays
    begins: list[float] = []
    read_before = stage.log_lengths()
    with Crowd(stage.urls, threads=2, prefix=prefix) as crowd:
        crowd.wait_until_busy()
        until, misses = time.monotonic() + seconds, Counter[str]()
        for fault in cycle(faults):
            if time.monotonic() > until and all(outcome.played[one.name] >= _least(one, scale) for one in faults):
                break
            began, over, has_broken = _injected(stage, fault, dice, fault.hold_seconds * scale)
            misses[fault.name] = 0 if has_broken else misses[fault.name] + 1
            assert misses[fault.name] < _MOST_MISSES, f"{fault.name} breaks nothing"
            if has_broken:
                outcome.played[fault.name] += 1
                outcome.recoveries.append(time.monotonic() - over)
                begins.append(began)
            time.sleep(fault.pause_seconds)
        calls = crowd.call_back()
    _count(outcome, calls, begins)
    outcome.unexpected = unexpected_answers(calls, may_stop=any(fault.stops_experiments for fault in faults))
    outcome.unexpected += _defects(stage.logged(read_before))
    for key in EXPERIMENTS:
        _judge(outcome, check(calls, read_stored(stage.database_url, prefix + key)))
    return outcome


def _least(fault: Fault, scale: float) -> int:
    return max(1, round(fault.at_least * scale))


def _injected(stage: Stage, fault: Fault, dice: Random, hold: float) -> tuple[float, float, bool]:
    """When it began, when it was over, and whether anything broke; returns when everybody answers again."""
    if fault.until_whole:
        stage.wait_for_spare()
    if fault.prepare is not None:
        fault.prepare(stage)
    began = time.monotonic()
    has_broken = fault.inject(stage, dice, hold)
    over = began if fault.from_beginning else time.monotonic()
    if fault.until_whole:
        stage.wait_until_whole()
    stage.wait_until_answering()
    return began, over, has_broken is not False


def _count(outcome: Outcome, calls: Sequence[Call], begins: Sequence[float]) -> None:
    outcome.calls = len(calls)
    outcome.in_flight = sum(call.began < begin < call.ended for begin in begins for call in calls)
    outcome.acknowledged = sum(call.is_acknowledged for call in calls)
    outcome.writes = len({(call.kind, call.operation) for call in calls if call.is_acknowledged and call.kind != "look"})
    open_ = [call for call in calls if not call.is_definite and call.workload != "indefinite"]
    outcome.unanswered = len(open_)
    for operation in operations(calls, "ask").values():
        first, *later = operation.attempts
        took_effect = any(call.is_acknowledged and call.replayed for call in later)
        if not first.is_definite and first.workload == "ledger":
            outcome.took_effect += took_effect
        elif first.workload == "indefinite" and first.status is None:
            outcome.hung_up += 1
            outcome.hung_up_took_effect += took_effect


def unexpected_answers(calls: Sequence[Call], *, may_stop: bool) -> list[str]:
    """Whatever is no success, no 503 and not what its workload provokes; experiments are stopped by one fault alone."""
    allowed = _NOT_RUNNING if may_stop else set()
    odd = Counter(
        f"{call.workload}: {call.kind} {call.status} {call.trouble}"
        for call in calls
        if call.status not in _GOOD | _AWAY
        and (call.kind, call.status, call.trouble) not in allowed
        and not (call.workload == "idempotence" and (call.kind, call.status, call.trouble) == _REUSED_KEY)
    )
    return [f"{what}, {times} times" for what, times in sorted(odd.items())]


def _defects(logged: str) -> list[str]:
    """What only a defect of ours writes: a stack trace, of which the end tells where."""
    entries = [json.loads(line) for line in logged.splitlines() if line.endswith("}") and line.startswith("{")]
    traces = {(entry["event"], entry["exception"].strip()) for entry in entries if "exception" in entry}
    return sorted(f"{event}: {' | '.join(trace.splitlines()[-_TOLD_LINES:])}" for event, trace in traces)


def _judge(outcome: Outcome, anomalies: Sequence[Anomaly]) -> None:
    outcome.anomalies += anomalies
    outcome.lost += sum(anomaly.promise in _LOST for anomaly in anomalies)
    outcome.doubled += sum(anomaly.promise in _DOUBLED for anomaly in anomalies)
    outcome.other += sum(anomaly.promise not in _LOST | _DOUBLED for anomaly in anomalies)
