"""An experiment's life: start, pause, resume, conclude, reopen, archive."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from service.application.commands.experiments import SettingsCommand, described
from service.application.commands.idempotency import OnceCommand
from service.domain import MOVES, event_details
from service.errors import ArmNotFound, Conflict, ExperimentPruned, IllegalTransition, NoRecommendation
from service.inference.certainty import leader_of

if TYPE_CHECKING:
    from service.application.commands.experiments import Described
    from service.application.commands.idempotency import Once, Rendered
    from service.application.live.reader import WritingReader
    from service.domain import Move
    from service.domain.callers import Access
    from service.engine.ledger import Ledger


@dataclass(frozen=True, slots=True)
class LifecycleMove(SettingsCommand):
    """One move in an experiment's life."""

    move: Move
    arm: str | None = None
    """For `conclude`: the arm to serve from now on, else the recommendation."""
    by: str = "request"

    def apply(self, ledger: Ledger, now: int) -> Described:
        """The experiment afterwards; the move that led to where it is may be made again, and leaves no trace."""
        experiment = ledger.experiment
        allowed, status = MOVES[self.move]
        if self._is_repeated(ledger):
            return described(ledger)
        if experiment.status not in allowed:
            raise IllegalTransition(f"Experiment {experiment.key!r} is {experiment.status}: `{self.move}` is not possible.")
        if self.move == "reopen" and experiment.pruned_at is not None:
            raise ExperimentPruned(experiment.key)
        moved = replace(experiment, status=status, last_move=self.move)
        if self.move == "conclude":
            moved = replace(moved, concluded_arm=self._concluded_arm(ledger))
        if self.move == "reopen":
            # Its own rule may hold still, and would conclude it again within a second.
            moved = replace(moved, concluded_arm=None, conclude_when=None)
        details = {"move": self.move, "by": self.by} | event_details.change_details(experiment, moved)
        ledger.change_settings("lifecycle", moved, details, now)
        return described(ledger)

    def _is_repeated(self, ledger: Ledger) -> bool:
        """Is this the move that led to the present status? To conclude with another arm is another move."""
        experiment = ledger.experiment
        if experiment.status != MOVES[self.move][1]:
            return False
        if self.move == "conclude" and self.arm is not None and ledger.position_of(self.arm) != experiment.concluded_arm:
            return False
        if experiment.last_move is None:  # before moves were kept: two of them led to running, one to each of the others
            return experiment.status != "running" and self.move != "reopen"
        return experiment.last_move == self.move

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


async def make_move(context: WritingReader, access: Access, move: LifecycleMove, once: Once[Described]) -> Rendered:
    """One move, once per idempotency key, answered when it is durable."""
    return await context.writer.submit(access, OnceCommand(once, move))
