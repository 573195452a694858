"""What people set and what is kept beside the traffic, as rows and back.

Settings, arms, batches, snapshots, observations, findings, stored replies.

Rows are tuples in the order of the table's columns; for an update, with None where it changes nothing.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import asdict, fields
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from service.domain import (
    Arm,
    ArmRecord,
    Batch,
    ConcludeWhen,
    Experiment,
    Expiry,
    ObservationRecord,
    PolicySpec,
    Progress,
    RewardSpec,
    Snapshot,
    StoredReply,
)
from service.domain.findings import Disturbance, Finding
from service.storage.traffic_rows import NO_COUNTS, NO_PROGRESS, count_values, progress_values, to_json
from service.storage.updated_columns import LATER_SETTINGS, PROGRESS, SETTINGS

if TYPE_CHECKING:
    from sqlalchemy import RowMapping

    Row = tuple[Any, ...]


# How the column `status` of a stored reply tells whether something was created.
_CREATED, _DONE = 201, 200


def _rule(rule: ConcludeWhen) -> str:
    """Without what is not asked for: the release before does not know it."""
    later = ("decided", "beats_control")
    return to_json({name: value for name, value in asdict(rule).items() if name not in later or value})


def _settings(experiment: Experiment) -> Row:
    return (
        experiment.name,
        experiment.description,
        to_json(asdict(experiment.policy)),
        to_json(asdict(experiment.reward)),
        to_json(asdict(experiment.expiry)) if experiment.expiry else None,
        experiment.sticky,
        experiment.confidence,
        _rule(experiment.conclude_when) if experiment.conclude_when else None,
        experiment.status,
        experiment.concluded_arm,
    )


def _later_settings(experiment: Experiment) -> Row:
    return (
        to_json(experiment.tags),
        experiment.owner,
        experiment.last_move,
        experiment.worthwhile,
        experiment.control,
        experiment.ofrep_bulk,
        experiment.pruned_at,
    )


def settings_row(experiment: Experiment) -> Row:
    """What a patch or a lifecycle move may change."""
    return (experiment.id, None, *_settings(experiment), None, *NO_PROGRESS, *_later_settings(experiment), None)


def new_experiment_values(progress: Progress) -> dict[str, Any]:
    """A new experiment, by column; the database gives the id."""
    experiment = progress.experiment
    fixed = {"key": experiment.key, "created_at": experiment.created_at}
    settings = dict(zip(SETTINGS, _settings(experiment), strict=True))
    settings |= zip(LATER_SETTINGS, _later_settings(experiment), strict=True)
    return fixed | settings | dict(zip(PROGRESS, progress_values(progress), strict=True)) | {"imported": progress.imported}


def progress_from(row: RowMapping) -> Progress:
    """An experiments row."""
    expiry = json.loads(row["expiry"]) if row["expiry"] else None
    conclude_when = json.loads(row["conclude_when"]) if row["conclude_when"] else None
    return Progress(
        experiment=Experiment(
            id=row["id"],
            key=row["key"],
            name=row["name"],
            description=row["description"],
            policy=_policy(row["policy"]),
            reward=_reward(row["reward"]),
            expiry=Expiry(**expiry) if expiry else None,
            sticky=bool(row["sticky"]),
            confidence=row["confidence"],
            conclude_when=ConcludeWhen(**conclude_when) if conclude_when else None,
            status=row["status"],
            concluded_arm=row["concluded_arm"],
            created_at=row["created_at"],
            tags=tuple(json.loads(row["tags"])),
            owner=row["owner"],
            last_move=row["last_move"],
            worthwhile=row["worthwhile"],
            control=row["control"],
            ofrep_bulk=bool(row["ofrep_bulk"]),
            pruned_at=row["pruned_at"],
        ),
        version=row["version"],
        as_of=row["as_of"],
        draws=row["draws"],
        epoch=row["epoch"],
        batch=row["batch"],
        plan_cursor=row["plan_cursor"],
        plan_averaged=row["plan_averaged"],
        may_expire=bool(row["may_expire"]),
        observed=bool(row["observed"]),
        snapshot_at=row["snapshot_at"],
        snapshot_stride=row["snapshot_stride"],
        uncounted=tuple(map(int, row["uncounted"].split(","))) if row["uncounted"] else (),
        imported=row["imported"],
    )


@lru_cache(maxsize=256)
def _policy(text: str) -> PolicySpec:
    return PolicySpec(**json.loads(text))


@lru_cache(maxsize=256)
def _reward(text: str) -> RewardSpec:
    return RewardSpec(**json.loads(text))


def arm_row(experiment_id: int, record: ArmRecord, changed: int) -> Row:
    """A whole arms row."""
    arm = record.arm
    definition = (arm.name, to_json(arm.value), arm.min_share, arm.status)
    return (experiment_id, arm.position, arm.key, *definition, arm.added, *count_values(record.statistics, changed))


def arm_definition_row(experiment_id: int, arm: Arm) -> Row:
    """What people change about an arm."""
    definition = (arm.name, to_json(arm.value), arm.min_share, arm.status)
    return (experiment_id, arm.position, None, *definition, None, *NO_COUNTS)


# What a snapshot tells of the arms; the rest of it are columns.
_COURSE = [one.name for one in fields(Snapshot) if one.name not in ("sequence", "at")]


def batch_row(experiment_id: int, batch: Batch) -> Row:
    """A whole batches row."""
    return (experiment_id, batch.number, batch.sequence, to_json(batch.positions), to_json(batch.counts))


def batch_from(row: RowMapping) -> Batch:
    """A batches row."""
    return Batch(
        number=row["number"],
        sequence=row["sequence"],
        positions=tuple(json.loads(row["positions"])),
        counts=tuple(json.loads(row["counts"])),
    )


def snapshot_row(experiment_id: int, snapshot: Snapshot) -> Row:
    """A whole snapshots row."""
    body = {name: getattr(snapshot, name) for name in _COURSE}
    return (experiment_id, snapshot.sequence, snapshot.at, zlib.compress(to_json(body).encode(), level=1))


def snapshot_from(row: RowMapping) -> Snapshot:
    """A snapshots row."""
    return Snapshot(sequence=row["sequence"], at=row["at"], **json.loads(zlib.decompress(row["body"])))


def observation_row(experiment_id: int, named: ObservationRecord) -> Row:
    """A whole observations row."""
    return (experiment_id, named.id, named.arm, named.reward, named.sequence, named.status, named.epoch, named.changed)


def observation_change_row(experiment_id: int, named: ObservationRecord) -> Row:
    """What a correction changes."""
    return (experiment_id, named.id, None, named.reward, None, named.status, None, named.changed)


def observation_from(row: RowMapping) -> ObservationRecord:
    """An observations row."""
    return ObservationRecord(
        id=row["id"],
        arm=row["arm"],
        reward=row["reward"],
        sequence=row["sequence"],
        epoch=row["epoch"],
        status=row["status"],
        changed=row["changed"],
    )


def finding_row(experiment_id: int, finding: Finding) -> Row:
    """A whole findings row."""
    compared = (finding.kind, finding.arm, finding.better, finding.worse, finding.evidence, finding.level)
    return (experiment_id, *compared, finding.sequence, finding.at)


def finding_from(row: RowMapping) -> Finding:
    """A findings row."""
    return Finding(
        kind=row["kind"],
        better=row["better"],
        worse=row["worse"],
        evidence=row["evidence"],
        level=row["level"],
        sequence=row["sequence"],
        at=row["at"],
    )


def disturbance_rows(experiment_id: int, disturbance: Disturbance) -> list[Row]:
    """What ends findings, as rows like theirs: a kind or none, and an arm or -1."""
    kinds = ("",) if disturbance.kinds is None else disturbance.kinds
    arm = -1 if disturbance.arm is None else disturbance.arm
    return [(experiment_id, kind, arm, -1, None, 0.0, 0.0, 0, 0) for kind in kinds]


def reply_row(experiment_id: int, reply: StoredReply) -> Row:
    """A whole replies row."""
    return (
        experiment_id,
        reply.route,
        reply.key,
        reply.body_hash,
        _CREATED if reply.created else _DONE,
        reply.body,
        reply.created_at,
    )


def reply_from(row: RowMapping) -> StoredReply:
    """A replies row."""
    return StoredReply(
        route=row["route"],
        key=row["key"],
        body_hash=row["body_hash"],
        created=row["status"] == _CREATED,
        body=bytes(row["body"]),
        created_at=row["created_at"],
    )
