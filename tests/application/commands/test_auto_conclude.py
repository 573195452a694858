"""When an experiment concludes by itself, and on what it does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from service.application.commands.arms import AddArm, ChangeArm
from service.application.commands.ask import Ask
from service.application.commands.auto_conclude import ConcludeIfSure
from service.application.commands.experiments import Patch
from service.application.commands.keep_findings import KeepFindings
from service.application.commands.observations import ChangeObservation
from service.application.commands.tell import ObservationItem, Observe, Tell
from service.domain import Arm, ConcludeWhen
from service.domain.findings import Finding
from service.engine.queue import Command
from testing.workers import TURNS, Workers

# Whatever ends a finding, by what it does to the experiment; given the id of an assignment that has its reward.
ENDINGS: dict[str, Callable[[str], Command[Any]]] = {
    "correction": lambda told: Tell(told, "correct", 0.0),
    "void": lambda told: Tell(told, "void"),
    "import": lambda _: Observe([ObservationItem("b", 1.0)]),
    "edited import": lambda _: ChangeObservation("imported", reward=0.0),
    "new arm": lambda _: AddArm(Arm(0, "d", "d", None)),
    "arm disabled": lambda _: ChangeArm("b", {"status": "disabled"}),
    "another confidence": lambda _: Patch({"confidence": 0.99}),
}


def sure(workers: Workers, key: str) -> str:
    """An experiment with few rewards of which it was found that `a` is the best arm; the id of a rewarded assignment."""
    workers.create(key, [(arm, 0.0) for arm in "abc"], conclude_when=ConcludeWhen(separated=True, min_observations=1))
    drawn = workers.submit(key, Ask(None)).assignment
    assert drawn is not None
    workers.submit(key, Tell(drawn.id, "reward", 1.0))
    workers.submit(key, Observe([ObservationItem("b", 1.0, "imported")]))
    found = [Finding("separated", 0, worse, 5.0, 0.01) for worse in (1, 2)]
    assert len(workers.submit(key, KeepFindings(workers.look(key).version, found))) == 2
    return drawn.id


def test_what_was_found_is_concluded_on_once(workers: Workers, key: str) -> None:
    """It holds although a look at the rewards alone would not show it."""
    sure(workers, key)
    assert workers.submit_together(key, [ConcludeIfSure(), ConcludeIfSure()]) == [True, False]


@pytest.mark.parametrize("rewards", [0, 1], ids=["not yet shown", "shown since the last look"])
def test_a_conclusion_keeps_what_it_rests_on(workers: Workers, key: str, rewards: int) -> None:
    """Rewards that arrive between the look and the conclusion may be what it takes: the history says what was shown."""
    workers.create(key, [("a", 0.0), ("b", 0.0)], conclude_when=ConcludeWhen(separated=True, min_observations=1))
    workers.submit(key, Observe([ObservationItem("a", float(rewards)), ObservationItem("b", 0.0)] * 200))
    assert workers.submit(key, ConcludeIfSure()) is bool(rewards)
    assert (workers.look(key).verdict.separated_at is not None) is bool(rewards)
    assert workers.replay(key) == (1 + 400 + 2 * rewards)


@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS)
def test_what_ends_a_finding_in_the_same_group_counts(workers: Workers, key: str, ending: Callable[[str], Command[Any]]) -> None:
    """What the group read before its first decision is not what holds at a later one."""
    told = sure(workers, key)
    assert workers.submit_together(key, [ending(told), ConcludeIfSure()])[1] is False
    assert workers.submit(key, ConcludeIfSure()) is False


def test_what_ends_a_finding_in_the_group_before_counts(workers: Workers, key: str) -> None:
    """The group is on its way to the disk while the next one is decided; and the other way round, the finding held."""
    for turns in TURNS:
        ended, concluded = f"{key}-{turns}", f"{key}-{turns}-first"
        told = sure(workers, ended)
        assert workers.submit_in_two_waves(ended, [Tell(told, "void")], [ConcludeIfSure()], turns)[1] is False
        told = sure(workers, concluded)
        assert workers.submit_in_two_waves(concluded, [ConcludeIfSure()], [Tell(told, "void")], turns)[0] is True
