"""Which changes a look notes, and when it is to look again."""

from __future__ import annotations

import math

from service.application.commands.lifecycle import LifecycleMove
from service.application.commands.note_pacing import NotePacing
from service.application.commands.tell import ObservationItem, Observe
from service.application.reads.sightings import Sighting, sighting
from service.domain.notices import Pace
from testing.outboxes import Outboxes
from testing.workers import Workers


def _look(outboxes: Outboxes, settle_seconds: float, worker: int = 0) -> tuple[Sighting, float]:
    """What a worker sees, and in how many seconds it is to look again, after it has noted what is to be noted."""
    context = outboxes.contexts[worker]

    async def look() -> tuple[Sighting, float]:
        await context.webhooks.refresh()
        seen = await sighting(context, "one")
        return seen, await NotePacing(context, Pace(settle_seconds)).note("one", seen)

    return outboxes.workers.run(look())


def _reward(outboxes: Outboxes, arm: str, times: int) -> None:
    """So many rewards of an arm. Observations, so that no policy has a say."""
    outboxes.set_clock()
    outboxes.workers.submit("one", Observe([ObservationItem(arm=arm, reward=1.0)] * times))


def _experiment(workers: Workers, outboxes: Outboxes) -> None:
    workers.create("one", [("a", 0.0), ("b", 0.0)])
    outboxes.workers.submit("one", Observe([ObservationItem(arm=arm, reward=0.0) for arm in "ab"]))
    _reward(outboxes, "a", 1)


def test_nobody_asks_and_nothing_is_noted(workers: Workers) -> None:
    """Nor is anything looked at again for it."""
    with Outboxes(workers) as outboxes:
        _experiment(workers, outboxes)
        seen, again = _look(outboxes, 0.0)
        assert (seen.leader, again) == (0, math.inf)
        outboxes.create("https://hooks.example.com/", events=("experiment.paused",))
        assert _look(outboxes, 0.0)[1] == math.inf
        assert workers.look("one").version.number == seen.version.number


def test_a_leader_is_noted_once_by_whoever_sees_it(workers: Workers) -> None:
    """Two workers look; one note is written, and neither has anything more to look for."""
    with Outboxes(workers) as outboxes:
        _experiment(workers, outboxes)
        outboxes.create("https://hooks.example.com/")
        before = workers.look("one").version.number
        for worker in (0, 1, 0, 1):
            _look(outboxes, 0.0, worker)
        assert workers.look("one").version.number == before + 1
        assert _look(outboxes, 0.0)[1] == math.inf
        assert workers.replay("one") == before + 1


def test_a_change_that_came_too_soon_is_looked_at_again(workers: Workers) -> None:
    """In as long as the pace says; and no longer when the experiment is over."""
    with Outboxes(workers) as outboxes:
        _experiment(workers, outboxes)
        outboxes.create("https://hooks.example.com/")
        _look(outboxes, 0.0)
        _reward(outboxes, "b", 9)
        seen, again = _look(outboxes, 1_000.0)
        assert seen.leader == 1
        assert 900 < again <= 1_000
        workers.submit("one", LifecycleMove("conclude"))
        assert _look(outboxes, 0.0)[1] == math.inf
        assert _look(outboxes, 1_000.0)[1] == math.inf
