"""Evaluate: a flag for a unit, which is the arm of a sticky experiment. Asking again is no new exposure."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar, Literal, cast

import msgspec

from service.application.commands.ask import Ask
from service.domain.callers import Access
from service.errors import BestArmError, NotSticky
from service.storage.queries import bulk_flags

if TYPE_CHECKING:
    from service.application.commands.ask import AskAnswer
    from service.application.live.reader import WritingReader
    from service.domain import PolicyKind
    from service.domain.callers import Caller, Scope
    from service.domain.lookups import LookupRequest
    from service.engine.ledger import Ledger


class Evaluation(msgspec.Struct, frozen=True, gc=False):
    """What a flag is for a unit."""

    flag: str
    status: Literal["split", "static", "disabled"]
    """Drawn for the unit, the arm that was concluded with, or none: the experiment is not asked now."""
    policy: PolicyKind
    answer: AskAnswer | None = None


class Evaluate(msgspec.Struct, frozen=True, gc=False):
    """One evaluation: an ask, where the experiment is one whose units keep their arms."""

    unit: str
    weight: ClassVar[int] = 1
    scope: ClassVar[Scope] = "assign"
    by_unit: ClassVar[bool] = True

    def request_lookups(self, lookups: LookupRequest, ledger: Ledger) -> None:
        """The assignment of this unit."""
        Ask(self.unit).request_lookups(lookups, ledger)

    def apply(self, ledger: Ledger, now: int) -> Evaluation:
        """The unit's arm, drawn if it has none yet."""
        experiment = ledger.experiment
        if not experiment.sticky:
            raise NotSticky(
                f"Experiment {experiment.key!r} is not sticky: every evaluation would be a new draw. Only sticky ones are flags."
            )
        if experiment.status not in ("running", "concluded"):
            return Evaluation(experiment.key, "disabled", experiment.policy.kind)
        status: Literal["split", "static"] = "split" if experiment.status == "running" else "static"
        return Evaluation(experiment.key, status, experiment.policy.kind, Ask(self.unit).apply(ledger, now))


async def evaluate_all(context: WritingReader, caller: Caller, unit: str) -> dict[str, Evaluation | BestArmError]:
    """All flags that opted in and that the caller may see; each is an ask of its own, and may fail by itself."""
    caller.require("assign")
    async with context.database.reading() as connection:
        flags = await bulk_flags.bulk_flags(connection, caller.experiments)
    found = await asyncio.gather(*(evaluate(context, Access(caller, flag), unit) for flag in flags), return_exceptions=True)
    for one in found:
        if isinstance(one, BaseException) and not isinstance(one, BestArmError):
            raise one
    return dict(zip(flags, cast("list[Evaluation | BestArmError]", found), strict=True))


async def evaluate(context: WritingReader, access: Access, unit: str) -> Evaluation:
    """One evaluation, answered when its draw, if there is one, is durable."""
    return await context.writer.submit(access, Evaluate(unit))
