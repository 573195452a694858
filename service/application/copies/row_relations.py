"""What the rows of one experiment must be to each other, so that no reader of them meets what cannot be.

The shapes (service/storage/row_shapes.py) look at a row by itself. Here arms are numbered without a gap, every position is that
of an arm, numbers of draws and events lie within what the experiment says of itself and rise, rewards are such as it takes, and
what is kept as JSON or compressed can be read. Whether all of it follows from the history is for replay to say.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import structs

from service.application.commands import ask
from service.application.commands.idempotency import NOTE
from service.domain import ArmRecord, ConcludeWhen, Expiry, PolicySpec, Progress, RewardSpec, Snapshot
from service.domain.limits import FEWEST_ARMS, MOST_ARMS, MOST_DECOMPRESSED_BYTES, MOST_VALUE_BYTES
from service.errors import InvalidValue
from service.storage import experiment_copies, row_shapes, settings_rows, traffic_rows
from service.storage.row_shapes import Shape

# How each composite setting is read back; types are not converted.
_PARTS: dict[str, Any] = {
    "policy": PolicySpec,
    "reward": RewardSpec,
    "expiry": Expiry,
    "conclude_when": ConcludeWhen,
    "tags": list[str],
}


class RowRelations:
    """Follows the rows of a file in their order."""

    def __init__(self, experiment: row_shapes.ExperimentShape) -> None:
        row: dict[str, Any] = structs.asdict(experiment)
        for name, kind in _PARTS.items():
            if row[name] is not None:
                msgspec.convert(json.loads(row[name]), kind)
        self.progress: Progress = settings_rows.progress_from(row | {"id": 0})  # type: ignore[arg-type] # as good as a row
        self.arms: list[ArmRecord] = []
        self._keys: set[str] = set()
        self._last = dict.fromkeys(experiment_copies.TABLES, 0)
        self._check: dict[type[Shape], Callable[[Any], None]] = {
            row_shapes.ArmShape: self._arm,
            row_shapes.AssignmentShape: self._assignment,
            row_shapes.EventShape: self._event,
            row_shapes.BatchShape: self._batch,
            row_shapes.SnapshotShape: self._snapshot,
            row_shapes.ObservationShape: self._observation,
            row_shapes.FindingShape: self._finding,
            row_shapes.ReplyShape: self._reply,
            row_shapes.PruningShape: self._pruning,
        }

    def check(self, row: Shape) -> None:
        """Raise unless this row fits those before it."""
        check = self._check.get(type(row))
        if check is not None:
            check(row)

    def arms_are_complete(self) -> None:
        """Called when all arms are there: they are enough, and what the experiment says of arms is true."""
        experiment = self.progress.experiment
        _require(FEWEST_ARMS <= len(self.arms) <= MOST_ARMS, f"There are {len(self.arms)} arms.")
        _require(any(record.arm.active for record in self.arms), "No arm is active.")
        self._position(experiment.control, experiment.concluded_arm, *self.progress.uncounted)
        served = experiment.concluded_arm
        _require(served is None or self.arms[served].arm.active, "The concluded arm is disabled.")
        _require(served is not None or experiment.status not in ("concluded", "archived"), "No arm is concluded with.")

    def finish(self) -> None:
        """Called when all rows are there: none is missing at the end."""
        drawn, told = self._last["assignments"], self._last["events"]
        whole = self.progress.experiment.pruned_at is None
        _require(drawn == self.progress.draws or not whole, f"There are {drawn} assignments, and {self.progress.draws} draws.")
        _require(told == self.progress.version, f"The last event is {told}, the version {self.progress.version}.")

    def _arm(self, row: row_shapes.ArmShape) -> None:
        _require(row.position == len(self.arms), f"Arm {len(self.arms)} is missing.")
        _require(row.key not in self._keys, f"The arm key {row.key!r} is used twice.")
        _require(len(row.value.encode()) <= MOST_VALUE_BYTES, "A value is longer than 16 KiB.")
        self._keys.add(row.key)
        self.arms.append(traffic_rows.arm_from(structs.asdict(row)))  # type: ignore[arg-type] # as good as a row

    def _assignment(self, row: row_shapes.AssignmentShape) -> None:
        self._follows("assignments", row.draw, self.progress.draws)
        self._position(row.arm)
        self._sequence(row.sequence)
        self._reward(row.reward, row.expiry_reward)

    def _event(self, row: row_shapes.EventShape) -> None:
        self._follows("events", row.sequence, self.progress.version)
        self._position(row.arm)
        _require(row.draw is None or row.draw <= self.progress.draws, f"There is no draw {row.draw}.")
        self._reward(row.expiry_reward, row.reward_before, row.reward_after)
        _require(row.details is None or isinstance(json.loads(row.details), dict), "The details of an event are an object.")

    def _batch(self, row: row_shapes.BatchShape) -> None:
        self._follows("batches", row.number, self.progress.batch)
        self._sequence(row.sequence)
        positions, counts = (msgspec.json.decode(text, type=list[row_shapes.Count]) for text in (row.positions, row.counts))
        self._position(*positions)
        _require(len(positions) == len(counts), "A batch has a count for each of its arms.")

    def _snapshot(self, row: row_shapes.SnapshotShape) -> None:
        self._sequence(row.sequence)
        body = json.loads(_decompressed(row.body))
        snapshot = msgspec.convert({"sequence": row.sequence, "at": row.at} | body, Snapshot)
        lengths = {len(value) for value in structs_of(snapshot) if isinstance(value, list)}
        _require(len(lengths) == 1 and max(lengths) <= len(self.arms), "A snapshot has an entry for each arm of its time.")

    def _observation(self, row: row_shapes.ObservationShape) -> None:
        self._position(row.arm)
        self._sequence(row.sequence, row.changed)
        self._reward(row.reward)

    def _finding(self, row: row_shapes.FindingShape) -> None:
        self._position(row.arm, row.better, row.worse)
        self._sequence(row.sequence)

    def _reply(self, row: row_shapes.ReplyShape) -> None:
        if row.body.startswith(NOTE):
            arms, draws = ask.named_by_note(row.body)
            self._position(*arms)
            _require(all(1 <= draw <= self.progress.draws for draw in draws), "A stored reply names a draw that is not there.")
        else:
            _decompressed(row.body)

    def _pruning(self, row: row_shapes.PruningShape) -> None:
        _require(self.progress.experiment.pruned_at is not None, "An experiment that was not pruned cannot be half pruned.")
        _require(row.table_name in experiment_copies.TABLES, f"There is no table {row.table_name!r}.")
        _require(row.last_row is None or isinstance(json.loads(row.last_row), list), "A row is named by a list.")

    def _follows(self, table: str, number: int, most: int) -> None:
        """Numbers rise, and where nothing was pruned by one; batches are pruned with their draws."""
        last, whole = self._last[table], self.progress.experiment.pruned_at is None
        _require(last < number <= most and (number == last + 1 or not whole), f"{number} follows {last} of {most}.")
        self._last[table] = number

    def _position(self, *positions: int | None) -> None:
        for position in positions:
            _require(position is None or position < len(self.arms), f"There is no arm {position}.")

    def _sequence(self, *sequences: int) -> None:
        for sequence in sequences:
            _require(sequence <= self.progress.version, f"There is no event {sequence}.")

    def _reward(self, *rewards: float | None) -> None:
        for reward in rewards:
            objection = None if reward is None else self.progress.experiment.reward.objection_to(reward)
            _require(objection is None, str(objection))


def structs_of(snapshot: Snapshot) -> Sequence[object]:
    """The values of its fields."""
    return [getattr(snapshot, name) for name in Snapshot.__slots__]


def _require(holds: bool, otherwise: str) -> None:  # noqa: FBT001 - what holds or not is what it is about
    if not holds:
        raise InvalidValue("/file", otherwise)


def _decompressed(body: bytes) -> bytes:
    """No more than a body can be, whatever it says."""
    unpacking = zlib.decompressobj()
    content = unpacking.decompress(body, MOST_DECOMPRESSED_BYTES)
    _require(unpacking.eof, "A compressed body is damaged, or far too long.")
    return content
