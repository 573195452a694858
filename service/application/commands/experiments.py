"""Experiments: create and patch them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from service.domain import Arm, ArmRecord, ArmStatistics, Event, Experiment, PolicySpec, Progress, RewardSpec, event_details
from service.domain.limits import MOST_VALUES_BYTES
from service.engine.clock import now_microseconds
from service.errors import (
    Conflict,
    ExperimentExists,
    Forbidden,
    IllegalTransition,
    InvalidValue,
    VersionConflict,
)
from service.policy.automatic import AutomaticPolicy
from service.storage import creation
from service.storage.queries import stored_experiments, stored_replies

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from service.application.commands.idempotency import Once, Rendered
    from service.application.live.reader import WritingReader
    from service.domain import Json
    from service.domain.callers import Access, Caller, Scope
    from service.domain.lookups import LookupRequest
    from service.engine.ledger import Ledger
    from service.engine.queue import Command
    from service.storage.database import Connection

Described = tuple[Progress, list[ArmRecord]]
Condition = Callable[[Described], bool]
"""Is the experiment still what the caller saw? Asked where it is changed, so that nobody can come in between."""

# Floors are given as decimals whose sum may miss one by rounding.
_FLOOR_SLACK = 1e-9


def resolved_policy(given: PolicySpec | AutomaticPolicy, reward: RewardSpec, arms: int) -> PolicySpec:
    """The policy as it is stored: one that is still to be chosen is chosen here."""
    return given.resolved(reward.kind, arms) if isinstance(given, AutomaticPolicy) else given


def check_expiry(experiment: Experiment) -> None:
    """Silence can only mean a reward that could have been told."""
    expiry = experiment.expiry
    if expiry and expiry.reward is not None:
        objection = experiment.reward.objection_to(expiry.reward)
        if objection:
            raise InvalidValue("/expiry/reward", objection)


def check_worthwhile(experiment: Experiment) -> None:
    """A difference can only matter if means can differ by so much."""
    reward, least = experiment.reward, experiment.worthwhile
    if least is None or reward.kind == "real":
        return
    width = 1.0 if reward.minimum is None or reward.maximum is None else reward.maximum - reward.minimum
    if least >= width:
        raise InvalidValue("/worthwhile", f"What is worthwhile must be below {width:g}, the range of the rewards.")


def control_among(arms: Sequence[Arm], key: str | None) -> int | None:
    """The position of the arm that is live today, by its key."""
    if key is None:
        return None
    position = next((arm.position for arm in arms if arm.key == key), None)
    if position is None:
        raise InvalidValue("/control", f"There is no arm {key!r} to be the control.")
    return position


def check_rule(experiment: Experiment) -> None:
    """Only a control can be beaten."""
    if experiment.conclude_when is not None and experiment.conclude_when.beats_control and experiment.control is None:
        raise InvalidValue("/conclude_when/beats_control", "Name the `control` that is to be beaten.")


def check_batch_size(experiment: Experiment, arms: Sequence[Arm]) -> None:
    """Checked when the policy is set; batches grow by themselves when arms are added."""
    batch_size = experiment.policy.batch_size
    if batch_size is not None and batch_size < 2 * len(arms):
        raise InvalidValue("/policy/batch_size", f"A batch must hold at least 2 draws per arm: {2 * len(arms)}.")


def check_arms(arms: Sequence[Arm], floor: str = "/arms") -> None:
    """Floors of the active arms and values of all arms together; `floor` points at what would break the former."""
    if sum(arm.min_share for arm in arms if arm.active) > 1 + _FLOOR_SLACK:
        raise InvalidValue(floor, "The floors (min_share) of all active arms together must not exceed 1.")
    if sum(len(json.dumps(arm.value, ensure_ascii=False, separators=(",", ":")).encode()) for arm in arms) > MOST_VALUES_BYTES:
        raise InvalidValue("/arms", "The values of all arms together must not exceed 8 MiB.")


async def create(
    context: WritingReader,
    caller: Caller,
    experiment: Experiment,
    arms: Sequence[Arm],
    once: Once[Described],
    *,
    notes: Mapping[str, Json] | None = None,
) -> Rendered:
    """Store a new experiment. Its key, and the idempotency key, are guarded by the database. The first event has the notes."""
    check_expiry(experiment)
    check_worthwhile(experiment)
    check_rule(experiment)
    check_batch_size(experiment, arms)
    check_arms(arms)
    return await store(context, caller, experiment, arms, once, notes=notes)


async def store(
    context: WritingReader,
    caller: Caller,
    experiment: Experiment,
    arms: Sequence[Arm],
    once: Once[Described],
    *,
    source: Experiment | None = None,
    notes: Mapping[str, Json] | None = None,
) -> Rendered:
    """Store a new experiment that was found to be good, or is as good as the one that it duplicates."""
    caller.require("manage")
    if not caller.sees(experiment.key):
        raise Forbidden("This key is not for experiments of that name.", "experiment")
    now = now_microseconds()
    experiment = replace(experiment, created_at=now)
    details = event_details.created_details(experiment, arms) | ({"duplicated_from": source.key} if source else {})
    details |= {**(notes or {}), **({"actor": caller.actor} if caller.actor else {})}
    created = Event(sequence=1, kind="created", at=now, details=details)
    progress = Progress(experiment, version=1, as_of=now, draws=0, epoch=1)
    members = [ArmRecord(arm, ArmStatistics()) for arm in arms]
    replies_of = source.id if source else 0
    try:
        async with context.database.writing() as connection:
            if source:
                await stored_experiments.keep(connection, source.id, source.key)
            first = await _first_answer(connection, replies_of, once)
            if first:
                return first
            rendered, reply = once.answer((progress, members), now)
            await creation.insert_experiment(connection, progress, members, created, reply, replies_of=replies_of)
    except ExperimentExists:
        # A retry that ran beside the first request finds the key taken, and then the first one's answer.
        async with context.database.reading() as connection:
            first = await _first_answer(connection, replies_of, once)
        if first:
            return first
        raise
    return rendered


async def _first_answer(connection: Connection, replies_of: int, once: Once[Described]) -> Rendered | None:
    stored = await stored_replies.find_reply(connection, replies_of, once.route, once.key) if once.key is not None else None
    return once.repeat(stored) if stored else None


class SettingsCommand:
    """A command that needs to look nothing up."""

    weight: ClassVar[int] = 1
    scope: ClassVar[Scope] = "manage"
    by_unit: ClassVar[bool] = False

    def request_lookups(self, lookups: LookupRequest, ledger: Ledger) -> None:
        """Ask for none: all that it needs is in the ledger."""


@dataclass(frozen=True, slots=True)
class Patch(SettingsCommand):
    """Change settings; some only while nothing has happened yet."""

    fields: dict[str, Any]
    condition: Condition | None = None

    def apply(self, ledger: Ledger, now: int) -> Described:
        """The experiment afterwards; a patch that changes nothing leaves no trace."""
        experiment = ledger.experiment
        if self.condition is not None and not self.condition(described(ledger)):
            raise VersionConflict(f"Experiment {experiment.key!r} is not what it was any more: read it again.")
        if experiment.status == "archived":
            raise IllegalTransition(f"Experiment {experiment.key!r} is archived and cannot be changed.")
        fixed = [name for name in ("sticky", "policy", "reward") if name in self.fields]
        if fixed and experiment.status != "draft":
            raise Conflict(f"`{fixed[0]}` can be changed only in a draft; experiment {experiment.key!r} is {experiment.status}.")
        fields = dict(self.fields)
        if "policy" in fields:
            fields["policy"] = resolved_policy(fields["policy"], fields.get("reward", experiment.reward), len(ledger.arms))
        if "control" in fields:
            fields["control"] = control_among(ledger.arms, fields["control"])
        patched = replace(experiment, **fields)
        check_expiry(patched)
        check_worthwhile(patched)
        check_rule(patched)
        if "policy" in self.fields:
            check_batch_size(patched, ledger.arms)
        if patched != experiment:
            ledger.change_settings("patch", patched, event_details.change_details(experiment, patched), now)
        return described(ledger)


def described(ledger: Ledger) -> Described:
    """The experiment of a ledger with its arms."""
    return ledger.progress, ledger.records(range(len(ledger.arms)))


async def change(context: WritingReader, access: Access, command: Command[Described]) -> Described:
    """A patch or a move, answered when it is durable."""
    return await context.writer.submit(access, command)
