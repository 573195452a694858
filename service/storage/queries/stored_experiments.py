"""Experiments with their arms, all draws counted: one, a page of them, what was found of one, and those with news."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec.structs import replace
from sqlalchemy import BigInteger, String, bindparam, exists, func, or_, select

from service.domain import Arm
from service.errors import ExperimentNotFound, InvalidValue
from service.storage import settings_rows, traffic_rows
from service.storage.queries.experiment_list import page_of_rows
from service.storage.queries.stored_sizes import size_columns, size_from
from service.storage.tables import HIDDEN, arms, experiments, findings

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from sqlalchemy import RowMapping, ScalarSelect
    from sqlalchemy.ext.asyncio import AsyncConnection

    from service.domain import ArmRecord, Progress
    from service.domain.findings import Finding, FindingKind
    from service.storage.queries.experiment_list import ExperimentFilter

# The statements of a look, made once: to put them together anew takes longer than to send them, above all the sizes.
_KEY, _ID = bindparam("wanted_key", type_=String), bindparam("wanted_id", type_=BigInteger)
_BY_KEY = select(experiments).where(experiments.c.key == _KEY)
_BY_KEY_WITH_SIZE = select(experiments, *size_columns()).where(experiments.c.key == _KEY)
_ARMS = select(arms).where(arms.c.experiment_id == _ID).order_by(arms.c.position)
_FINDINGS = select(findings).where(findings.c.experiment_id == _ID).order_by(findings.c.sequence)


async def experiment_id_of(connection: AsyncConnection, key: str) -> int:
    """The internal id behind a key."""
    found = (await connection.execute(select(experiments.c.id).where(experiments.c.key == key))).scalar_one_or_none()
    if found is None:
        raise ExperimentNotFound(key)
    return int(found)


async def keys(connection: AsyncConnection) -> Sequence[str]:
    """The keys of all, oldest first."""
    wanted = select(experiments.c.key).where(experiments.c.status.not_in(HIDDEN)).order_by(experiments.c.id)
    return (await connection.execute(wanted)).scalars().all()


async def progress_by_key(connection: AsyncConnection, key: str) -> Progress:
    """An experiment without its arms: how far it has come."""
    row = (await connection.execute(select(experiments).where(experiments.c.key == key))).mappings().first()
    if row is None:
        raise ExperimentNotFound(key)
    return settings_rows.progress_from(row)


async def experiment_by_key(connection: AsyncConnection, key: str) -> tuple[Progress, list[ArmRecord]]:
    """An experiment with all its arms, all draws counted."""
    row = (await connection.execute(_BY_KEY, {_KEY.key: key})).mappings().first()
    if row is None:
        raise ExperimentNotFound(key)
    return await _with_arms(connection, row)


async def small_experiment_by_key(connection: AsyncConnection, key: str) -> tuple[Progress, list[ArmRecord]] | None:
    """The same, or None if it is large."""
    row = (await connection.execute(_BY_KEY_WITH_SIZE, {_KEY.key: key})).mappings().first()
    if row is None:
        raise ExperimentNotFound(key)
    return None if size_from(row).is_large else await _with_arms(connection, row)


async def _with_arms(connection: AsyncConnection, row: RowMapping) -> tuple[Progress, list[ArmRecord]]:
    progress, members = settings_rows.progress_from(row), await connection.execute(_ARMS, {_ID.key: row["id"]})
    return replace(progress, uncounted=()), progress.counted(map(traffic_rows.arm_of, members))


@dataclass(frozen=True, slots=True)
class FoundPage:
    """Experiments, and how many arms each has; and, where the search stopped before the page was full, the id to go on behind."""

    found: list[tuple[Progress, int]]
    go_on_behind: int | None


async def page_of_experiments(
    connection: AsyncConnection, wanted: ExperimentFilter, *, before: int | None, limit: int
) -> FoundPage:
    """Those that the filter lets through, in its order; `before` is the id to go on behind."""
    if before is not None and wanted.by_key:
        await _require_there(connection, before)
    columns = experiments, _last_position().label("last_position")
    page = await page_of_rows(connection, columns, wanted, after=before, limit=limit)
    return FoundPage([(settings_rows.progress_from(row), row["last_position"] + 1) for row in page.rows], page.go_on_behind)


async def _require_there(connection: AsyncConnection, experiment_id: int) -> None:
    """In the order of keys, a page goes on behind an experiment's key: not if that was deleted meanwhile."""
    there = select(experiments.c.id).where(experiments.c.id == experiment_id, experiments.c.status.not_in(HIDDEN))
    if (await connection.execute(there)).scalar_one_or_none() is None:
        raise InvalidValue(
            "/query/page_token", "The experiment that the last page ended with is gone: begin with the first page."
        )


async def keep(connection: AsyncConnection, experiment_id: int, key: str) -> None:
    """Let nobody delete the experiment before this transaction ends. Its traffic goes on."""
    there = select(experiments.c.id).where(experiments.c.id == experiment_id, experiments.c.status.not_in(HIDDEN))
    if (await connection.execute(there.with_for_update(read=True, key_share=True))).scalar_one_or_none() is None:
        raise ExperimentNotFound(key)


async def listed_arms(connection: AsyncConnection, experiment_ids: Sequence[int]) -> dict[int, list[Arm]]:
    """The arms of these experiments by position, as lists show them: without their values, which may be large."""
    columns = arms.c.experiment_id, arms.c.position, arms.c.key, arms.c.name, arms.c.min_share, arms.c.status
    wanted = select(*columns).where(arms.c.experiment_id.in_(experiment_ids)).order_by(arms.c.experiment_id, arms.c.position)
    found: dict[int, list[Arm]] = {}
    for experiment_id, position, key, name, min_share, status in await connection.execute(wanted):
        found.setdefault(experiment_id, []).append(Arm(position, key, name, None, min_share, status))
    return found


async def arms_at(connection: AsyncConnection, experiment_id: int, positions: Collection[int]) -> dict[int, Arm]:
    """The arms at these positions."""
    wanted = select(arms).where(arms.c.experiment_id == experiment_id, arms.c.position.in_(positions))
    found = map(traffic_rows.arm_from, (await connection.execute(wanted)).mappings())
    return {record.arm.position: record.arm for record in found}


async def arm_by_key(connection: AsyncConnection, key: str, arm: str) -> Arm | None:
    """One arm by its key and its experiment's."""
    experiment_id = select(experiments.c.id).where(experiments.c.key == key).scalar_subquery()
    wanted = select(arms).where(arms.c.key == arm, arms.c.experiment_id == experiment_id)
    row = (await connection.execute(wanted)).mappings().first()
    return traffic_rows.arm_from(row).arm if row else None


async def active_arms(connection: AsyncConnection, key: str) -> int:
    """How many arms of the experiment are active."""
    experiment_id = await experiment_id_of(connection, key)
    wanted = select(func.count()).where(arms.c.experiment_id == experiment_id, arms.c.status == "active")
    return (await connection.execute(wanted)).scalar_one()


async def arm_keys(connection: AsyncConnection, experiment_id: int, positions: Collection[int] | None = None) -> dict[int, str]:
    """The keys of the arms at these positions, or of all."""
    wanted = select(arms.c.position, arms.c.key).where(arms.c.experiment_id == experiment_id)
    if positions is not None:
        wanted = wanted.where(arms.c.position.in_(positions))
    return {row.position: row.key for row in await connection.execute(wanted)}


async def position_of_arm(connection: AsyncConnection, experiment_id: int, key: str) -> int | None:
    """Where the arm with this key stands; None if there is none."""
    wanted = select(arms.c.position).where(arms.c.key == key, arms.c.experiment_id == experiment_id)
    return (await connection.execute(wanted)).scalar_one_or_none()


def _last_position() -> ScalarSelect[int]:
    """Of the arms of the experiment in the statement around it."""
    return select(func.max(arms.c.position)).where(arms.c.experiment_id == experiments.c.id).scalar_subquery()


async def findings_of(connection: AsyncConnection, experiment_id: int) -> dict[tuple[FindingKind, int], Finding]:
    """The findings that hold, by their kind and the arm that they are about, oldest first."""
    found = (await connection.execute(_FINDINGS, {_ID.key: experiment_id})).mappings()
    return {(row["kind"], row["arm"]): settings_rows.finding_from(row) for row in found}


@dataclass(frozen=True, slots=True)
class News:
    """What the once-a-second look must know of an experiment to which something happened."""

    version: int
    concludes: bool
    """By itself, when it is sure."""
    has_rewards: bool
    """Told, or supposed of who is silent; without any, nothing can be shown."""


async def experiments_with_news(connection: AsyncConnection, since: int) -> dict[str, News]:
    """The experiments under way to which something happened since this time, by their own times, of the workers' clocks."""
    is_told = exists().where(arms.c.experiment_id == experiments.c.id, arms.c.observations > 0)
    wanted = select(
        experiments.c.key, experiments.c.version, experiments.c.conclude_when, or_(experiments.c.may_expire, is_told)
    ).where(experiments.c.status.in_(("running", "paused")), experiments.c.as_of > since)
    rows = await connection.execute(wanted)
    return {key: News(version, rule is not None, bool(has_rewards)) for key, version, rule, has_rewards in rows}
