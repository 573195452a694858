"""The plan of an experiment that is not there yet: performed in a lane's process, because it costs up to a second."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from service.simulation.verdict_plan import plan

if TYPE_CHECKING:
    from service.application.live.reader import Reader
    from service.simulation.verdict_plan import Question


async def planned(reader: Reader, question: Question) -> dict[str, Any]:  # noqa: ARG001 - nothing is stored of it yet
    """What to expect."""
    return plan(question).described()
