"""Experiments: create, change, and lead through their life; arms: add, change, disable."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from service.application import specs
from service.application.idempotency import OnceCommand
from service.application.recommending import leader_of
from service.application.writer import now_microseconds
from service.domain import MOVES, Arm, ArmRecord, ArmStatistics, Event, Experiment, Progress
from service.errors import (
    ArmConcluded,
    ArmExists,
    ArmNotFound,
    Conflict,
    ExperimentExists,
    IllegalTransition,
    InvalidValue,
    LastActiveArm,
    NoRecommendation,
)
from service.storage import creating, reading

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.application.context import Context
    from service.application.idempotency import Once, Rendered
    from service.application.ledger import Ledger
    from service.domain import Move
    from service.storage.lookups import Wanted

Described = tuple[Progress, list[ArmRecord]]

MOST_ARMS = 10_000
# Values travel with every answer and live in memory, so their sum is bounded.
MOST_VALUE_BYTES = 8 * 1024 * 1024
# Floors are given as decimals whose sum may miss one by rounding.
_FLOOR_SLACK = 1e-9


def check_expiry(experiment: Experiment) -> None:
    """Silence can only mean a reward that could have been told."""
    expiry = experiment.expiry
    if expiry and expiry.reward is not None:
        objection = experiment.reward.objection_to(expiry.reward)
        if objection:
            raise InvalidValue("/expiry/reward", objection)


def check_batch_size(experiment: Experiment, arms: Sequence[Arm]) -> None:
    """Checked when the policy is set; batches grow by themselves when arms are added."""
    batch_size = experiment.policy.batch_size
    if batch_size is not None and batch_size < 2 * len(arms):
        raise InvalidValue("/policy/batch_size", f"A batch must hold at least 2 draws per arm: {2 * len(arms)}.")


def check_arms(arms: Sequence[Arm]) -> None:
    """Floors and values of all arms together."""
    if sum(arm.min_share for arm in arms) > 1 + _FLOOR_SLACK:
        raise InvalidValue("/arms", "The floors (min_share) of all arms together must not exceed 1.")
    if sum(len(json.dumps(arm.value, ensure_ascii=False, separators=(",", ":")).encode()) for arm in arms) > MOST_VALUE_BYTES:
        raise InvalidValue("/arms", "The values of all arms together must not exceed 8 MiB.")


async def create(context: Context, experiment: Experiment, arms: Sequence[Arm], once: Once[Described]) -> Rendered:
    """Store a new experiment. Its key, and the idempotency key, are guarded by the database."""
    check_expiry(experiment)
    check_batch_size(experiment, arms)
    check_arms(arms)
    now = now_microseconds()
    experiment = replace(experiment, created_at=now)
    created = Event(sequence=1, kind="created", at=now, details=specs.created_details(experiment, arms))
    progress = Progress(experiment, version=1, as_of=now, draws=0, epoch=1)
    members = [ArmRecord(arm, ArmStatistics()) for arm in arms]
    try:
        async with context.database.writing() as connection:
            stored = await creating.find_reply(connection, once.route, once.key) if once.key is not None else None
            if stored:
                return once.repeat(stored)
            await creating.insert_experiment(
                connection, progress, members, created, lambda known: once.answer((known, members), now)[1]
            )
    except ExperimentExists:
        # A retry that ran beside the first request finds the key taken, and then the first one's answer.
        if once.key is not None:
            async with context.database.reading() as connection:
                stored = await creating.find_reply(connection, once.route, once.key)
            if stored:
                return once.repeat(stored)
        raise
    return once.answer((progress, members), now)[0]


async def describe(context: Context, key: str) -> Described:
    """One experiment with its arms."""
    async with context.database.reading() as connection:
        return await reading.experiment_by_key(connection, key)


async def list_page(context: Context, *, before: int | None, limit: int) -> list[Described]:
    """A page of experiments, newest first."""
    async with context.database.reading() as connection:
        return await reading.page_of_experiments(connection, before=before, limit=limit)


class _Change:
    """A command that needs to look nothing up."""

    @property
    def weight(self) -> int:
        return 1

    def want(self, wanted: Wanted, ledger: Ledger) -> None:
        """Nothing."""


@dataclass(frozen=True, slots=True)
class Patch(_Change):
    """Change settings; some only while nothing has happened yet."""

    fields: dict[str, Any]

    def apply(self, ledger: Ledger, now: int) -> Described:
        """The experiment afterwards; a patch that changes nothing leaves no trace."""
        experiment = ledger.experiment
        if experiment.status == "archived":
            raise IllegalTransition(f"Experiment {experiment.key!r} is archived and cannot be changed.")
        fixed = [name for name in ("sticky", "policy", "reward") if name in self.fields]
        if fixed and experiment.status != "draft":
            raise Conflict(f"`{fixed[0]}` can be changed only in a draft; experiment {experiment.key!r} is {experiment.status}.")
        patched = replace(experiment, **self.fields)
        check_expiry(patched)
        if "policy" in self.fields:
            check_batch_size(patched, ledger.arms)
        if patched != experiment:
            ledger.change_settings("patch", patched, specs.change_details(experiment, patched), now)
        return _described(ledger)


@dataclass(frozen=True, slots=True)
class Step(_Change):
    """One step of an experiment's life."""

    move: Move
    arm: str | None = None
    """For `conclude`: the arm to serve from now on, else the recommendation."""
    by: str = "request"

    def apply(self, ledger: Ledger, now: int) -> Described:
        """The experiment afterwards."""
        experiment = ledger.experiment
        allowed, status = MOVES[self.move]
        if experiment.status not in allowed:
            raise IllegalTransition(f"Experiment {experiment.key!r} is {experiment.status}: `{self.move}` is not possible.")
        moved = replace(experiment, status=status)
        if self.move == "conclude":
            moved = replace(moved, concluded_arm=self._concluded_arm(ledger))
        details = {"move": self.move, "by": self.by} | specs.change_details(experiment, moved)
        ledger.change_settings("lifecycle", moved, details, now)
        return _described(ledger)

    def _concluded_arm(self, ledger: Ledger) -> int:
        if self.arm is None:
            leader = leader_of(ledger.experiment.reward, ledger.arms, ledger.statistics)
            if leader is None:
                raise NoRecommendation("There is no reward yet to recommend an arm by; name the arm to conclude with.")
            return leader
        position = ledger.position_of(self.arm)
        if position is None:
            raise ArmNotFound(ledger.experiment.key, self.arm)
        if not ledger.arms[position].active:
            raise Conflict(f"Arm {self.arm!r} is disabled; a concluded experiment serves an active one.")
        return position


@dataclass(frozen=True, slots=True)
class AddArm(_Change):
    """One more arm, at the end."""

    arm: Arm

    def apply(self, ledger: Ledger, now: int) -> ArmRecord:
        """The new arm."""
        _require_changeable(ledger)
        if ledger.position_of(self.arm.key) is not None:
            raise ArmExists(ledger.experiment.key, self.arm.key)
        if len(ledger.arms) >= MOST_ARMS:
            raise InvalidValue("", f"An experiment has at most {MOST_ARMS:,} arms.")
        added = 1 + max(arm.added for arm in ledger.arms)
        arm = replace(self.arm, position=len(ledger.arms), added=added)
        check_arms([*ledger.arms, arm])
        ledger.add_arm(arm, specs.arm_details(arm), now)
        return ledger.records([arm.position])[0]


@dataclass(frozen=True, slots=True)
class ChangeArm(_Change):
    """Another name, value, floor or status for an arm."""

    key: str
    fields: dict[str, Any]

    def apply(self, ledger: Ledger, now: int) -> ArmRecord:
        """The arm afterwards; a change of nothing leaves no trace."""
        _require_changeable(ledger)
        position = ledger.position_of(self.key)
        if position is None:
            raise ArmNotFound(ledger.experiment.key, self.key)
        arm = ledger.arms[position]
        changed = replace(arm, **self.fields)
        check_arms([*ledger.arms[:position], changed, *ledger.arms[position + 1 :]])
        if arm.active and not changed.active:
            if ledger.experiment.concluded_arm == position:
                raise ArmConcluded(f"Arm {self.key!r} is what the concluded experiment serves.")
            if sum(one.active for one in ledger.arms) == 1:
                raise LastActiveArm(f"Arm {self.key!r} is the last active one.")
        details = specs.change_details(arm, changed)
        if details["after"]:
            ledger.change_arm(changed, details, now)
        return ledger.records([position])[0]


def _require_changeable(ledger: Ledger) -> None:
    if ledger.experiment.status == "archived":
        raise IllegalTransition(f"Experiment {ledger.experiment.key!r} is archived and cannot be changed.")


def _described(ledger: Ledger) -> Described:
    return ledger.progress, ledger.records(range(len(ledger.arms)))


async def change(context: Context, key: str, command: Patch | Step) -> Described:
    """A patch or a step, answered when it is durable."""
    return await context.writer.submit(key, command)


async def add_arm(context: Context, key: str, arm: Arm, once: Once[ArmRecord]) -> Rendered:
    """A new arm, once per idempotency key."""
    return await context.writer.submit(key, OnceCommand(once, AddArm(arm)))


async def change_arm(context: Context, key: str, command: ChangeArm) -> ArmRecord:
    """A changed arm."""
    return await context.writer.submit(key, command)
