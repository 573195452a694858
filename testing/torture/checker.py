"""The checker: what clients were told, compared with what is stored. Acknowledged is durable, counted once, in order.

Each function below is one promise and yields what breaks it. They compare the calls with the rows, the rows with the statistics,
the statistics with the history, and what was seen at a version with the history up to it; nothing of the service's own
arithmetic is used but its replay, which is a check by itself.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from testing.torture.calls import Call
from testing.torture.effects import EXPIRED, PENDING, drawn, operations, possible_outcomes
from testing.torture.folded import Folded
from testing.torture.stored import Stored


@dataclass(frozen=True, slots=True)
class Anomaly:
    """A promise that was broken, and how."""

    promise: str
    detail: str


Promise = Callable[[Sequence[Call], Stored], Iterator[str]]


def check(calls: Sequence[Call], stored: Stored) -> list[Anomaly]:
    """All anomalies of one experiment."""
    own = sorted((call for call in calls if call.experiment == stored.key), key=lambda call: call.began)
    return [Anomaly(name, detail) for name, promise in PROMISES.items() for detail in promise(own, stored)]


def _lost_draws(calls: Sequence[Call], stored: Stored) -> Iterator[str]:
    """Every acknowledged assignment is there as it was told."""
    names = [arm.key for arm in stored.arms]
    rows = {row.id: (row.draw, names[row.arm], row.unit) for row in stored.assignments}
    for one in drawn(calls):
        if rows.get(one.id) != (one.draw, one.arm, one.unit):
            yield f"{one.call.operation} was told {one.id} (draw {one.draw}, {one.arm}); stored is {rows.get(one.id)}"


def _doubled_draws(calls: Sequence[Call], stored: Stored) -> Iterator[str]:
    """One operation draws once, whoever repeats it, and no draw is handed to two."""
    units = Counter(row.unit for row in stored.assignments if row.unit is not None)
    sticky = {unit for unit, times in Counter(call.sent.get("unit") for call in _first_asks(calls)).items() if times > 1}
    yield from (f"unit {unit} has {times} assignments" for unit, times in units.items() if times > 1)
    keys = Counter(row.idempotency_key for row in stored.assignments if row.idempotency_key is not None)
    yield from (f"key {key} has {times} assignments" for key, times in keys.items() if times > 1)
    told: dict[str, set[str]] = defaultdict(set)
    owners: dict[str, set[str]] = defaultdict(set)
    for one in drawn(calls):
        told[f"{one.call.operation} {one.unit}"].add(one.id)
        owners[one.id].add(one.call.operation)
    yield from (f"{name} was told {len(ids)} assignments" for name, ids in told.items() if len(ids) > 1)
    rows = {row.id: row for row in stored.assignments}
    for name, names in owners.items():
        if len(names) > 1 and (name not in rows or rows[name].unit not in sticky):
            yield f"{name} was handed to {sorted(names)}"


def _first_asks(calls: Sequence[Call]) -> list[Call]:
    return [operation.first for operation in operations(calls, "ask").values()]


def _gaps(_calls: Sequence[Call], stored: Stored) -> Iterator[str]:
    """Draws count 1, 2, 3, …, and so do events."""
    draws = [row.draw for row in stored.assignments]
    if draws != list(range(1, len(draws) + 1)) or stored.draws != len(draws):
        yield f"{len(draws)} draws, counted as {stored.draws}, from {draws[:1]} to {draws[-1:]}"
    sequence = [event.sequence for event in stored.events]
    if sequence != list(range(1, stored.version + 1)):
        yield f"{len(sequence)} events, from {sequence[:1]} to {sequence[-1:]}, at version {stored.version}"


def _made_up(calls: Sequence[Call], stored: Stored) -> Iterator[str]:
    """Nothing is stored that nobody asked for."""
    asked = {call.sent.get("unit") for call in calls if call.kind == "ask"}
    asked |= {unit for call in calls if call.kind == "ask_many" for unit in call.sent["units"]}
    asked_keys = {call.operation for call in calls if call.kind == "ask"} | {None}
    for row in stored.assignments:
        if row.unit not in asked or row.idempotency_key not in asked_keys:
            yield f"draw {row.draw} is for {row.unit}, which nobody asked for"


def _halves(calls: Sequence[Call], stored: Stored) -> Iterator[str]:
    """A batch is drawn as a whole or not at all."""
    there = {row.unit for row in stored.assignments}
    for name, operation in operations(calls, "ask_many").items():
        units = operation.first.sent["units"]
        found = sum(unit in there for unit in units)
        if found not in {0, len(units)}:
            yield f"{name}: {found} of {len(units)} units"


def _lost_rewards(calls: Sequence[Call], stored: Stored) -> Iterator[str]:
    """Every assignment is what its client made of it."""
    outcomes = possible_outcomes(calls)
    for row in stored.assignments:
        allowed = outcomes.get(row.id, {PENDING})
        if PENDING in allowed and row.expires_at is not None:
            allowed = allowed | {EXPIRED}
        if not any(row.state.status == status and reward in {None, row.state.reward} for status, reward in allowed):
            yield f"{row.id} is {row.state.status} {row.state.reward}, and may be {sorted(allowed, key=str)}"
    for name, operation in operations(calls, "observe").items():
        for item in operation.first.sent["items"]:
            kept = stored.observations.get(item["id"])
            if kept is None and not operation.acknowledged:
                continue
            if kept is None or (stored.arms[kept.arm].key, kept.reward) != (item["arm"], item["reward"]):
                yield f"{name}: observation {item} is stored as {kept}"


def _doubled_rewards(_calls: Sequence[Call], stored: Stored) -> Iterator[str]:
    """A draw is rewarded once; whatever comes later is a correction."""
    times = Counter(event.draw for event in stored.events if event.kind == "reward")
    yield from (f"draw {draw} was rewarded {count} times" for draw, count in times.items() if count > 1)


def _wrong_statistics(_calls: Sequence[Call], stored: Stored) -> Iterator[str]:
    """What is kept of each arm is what its rows add up to."""
    for position, arm in enumerate(stored.arms):
        own = [row.state for row in stored.assignments if row.arm == position]
        rewards = [Fraction(state.reward) for state in own if state.status == "rewarded" and state.reward is not None]
        rewards += [
            Fraction(event.reward_after)
            for event in stored.events
            if event.kind == "observation" and event.arm == position and event.reward_after is not None
        ]
        pending = sum(state.status == "pending" for state in own)
        expected = (pending, len(rewards), sum(rewards, Fraction()), sum((one * one for one in rewards), Fraction()))
        kept = (arm.pending, arm.observations, arm.total, arm.squares)
        if kept != expected:
            yield f"{arm.key}: stored {kept}, by its rows {expected}"


def _replay(_calls: Sequence[Call], stored: Stored) -> Iterator[str]:
    """Replay finds no difference."""
    if stored.difference is not None:
        yield stored.difference


def _wrong_looks(calls: Sequence[Call], stored: Stored) -> Iterator[str]:
    """Whoever looked at a version saw what the history up to it adds up to."""
    looks = sorted((call for call in calls if call.kind == "look" and call.is_acknowledged), key=_version)
    folded = Folded(stored)
    for look in looks:
        if _version(look) > stored.version:
            yield f"{look.client} saw version {_version(look)}, stored is {stored.version}"
            return
        folded.advance_to(_version(look))
        for seen in look.answer["arms"]:
            is_so = folded.arm(seen[0])
            if tuple(seen[1:]) != is_so:
                yield f"{look.client} saw {seen} at version {_version(look)}; it was {is_so}"


def _version(look: Call) -> int:
    version: int = look.answer["version"]
    return version


def _stale_looks(calls: Sequence[Call], stored: Stored) -> Iterator[str]:
    """Whoever looks sees everything that was acknowledged before, to anybody; so no client sees a version go back."""
    sequences = _sequences(calls, stored)
    known, newest, origin = sorted(sequences, key=lambda one: one[0]), 0, ""
    place = 0
    for look in sorted((call for call in calls if call.kind == "look" and call.is_acknowledged), key=lambda call: call.began):
        while place < len(known) and known[place][0] < look.began:
            newest, origin = max((newest, origin), known[place][1:])
            place += 1
        if _version(look) < newest:
            yield f"{look.client} saw version {_version(look)} after {newest} was known by {origin}"


def _sequences(calls: Sequence[Call], stored: Stored) -> list[tuple[float, int, str]]:
    """(when it was known, the version that it takes, who knew it) of every acknowledged call."""
    rows = {row.id: row.sequence for row in stored.assignments}
    rewarded = {event.draw: event.sequence for event in stored.events if event.kind == "reward"}
    draws = {row.id: row.draw for row in stored.assignments}
    found = [(one.call.ended, rows.get(one.id, 0), f"ask {one.call.operation}") for one in drawn(calls)]
    for call in calls:
        if call.is_acknowledged and call.kind == "tell":
            found.append((call.ended, rewarded.get(draws.get(call.sent["assignment"]), 0), f"tell {call.operation}"))
        elif call.is_acknowledged and call.kind == "look":
            found.append((call.ended, _version(call), f"look of {call.client}"))
    return found


def _disorder(calls: Sequence[Call], stored: Stored) -> Iterator[str]:
    """An ask that began after another was answered has a higher draw; times in the history never run back."""
    fresh = [call for call in calls if call.kind == "ask" and call.status == 201 and not call.replayed]
    highest = 0
    ended = sorted(fresh, key=lambda call: call.ended)
    place = 0
    for call in sorted(fresh, key=lambda call: call.began):
        while place < len(ended) and ended[place].ended < call.began:
            highest = max(highest, ended[place].answer["draw"])
            place += 1
        if call.answer["draw"] < highest:
            yield f"{call.operation} got draw {call.answer['draw']} after {highest} had been answered"
    for before, after in pairwise(stored.events):
        if after.at < before.at:
            yield f"event {after.sequence} is {before.at - after.at} µs before its predecessor"


def _broken_repeats(calls: Sequence[Call], _stored: Stored) -> Iterator[str]:
    """A key with another body is refused; the same body gets the first answer, and the first answer alone is new."""
    for name, operation in operations(calls, "ask").items():
        bodies = {call.sent.get("unit") for call in operation.acknowledged}
        if len(bodies) > 1:
            yield f"{name} was answered for {sorted(map(str, bodies))}"
        fresh = [call for call in operation.acknowledged if not call.replayed]
        if len(fresh) > 1:
            yield f"{name} was answered {len(fresh)} times as if it were new"
        for call in operation.attempts:
            if call.trouble == "idempotency_key_reused" and call.sent == operation.first.sent:
                yield f"{name} was refused as another body"


PROMISES: dict[str, Promise] = {
    "acknowledged draws are stored": _lost_draws,
    "an operation draws once": _doubled_draws,
    "draws and events have no gap": _gaps,
    "nothing is made up": _made_up,
    "a batch is whole": _halves,
    "acknowledged rewards are stored": _lost_rewards,
    "a reward counts once": _doubled_rewards,
    "statistics equal rows": _wrong_statistics,
    "replay finds no difference": _replay,
    "a look is its version": _wrong_looks,
    "a look is current": _stale_looks,
    "later comes after": _disorder,
    "a repeat is the first answer": _broken_repeats,
}
