"""Times become numbers by halving: what is found is what a look at every row would find."""

from __future__ import annotations

from service.application.commands.ask import AskMany
from service.storage.queries import stored_experiments, time_bounds
from testing.workers import Workers

_MOMENTS = (3, 1, 5, 1)


def test_the_first_number_at_or_after_a_time(workers: Workers, key: str) -> None:
    """For each time of a draw, right before it and right after it; where there is none, one more than there are."""
    workers.create(key, [("a", 0.0), ("b", 0.0)])
    for draws in _MOMENTS:
        workers.now += 1_000_000
        workers.submit(key, AskMany([None] * draws, by_count=True))

    async def found(at: int) -> tuple[int, int]:
        async with workers.contexts[0].database.reading() as connection:
            progress, _ = await stored_experiments.experiment_by_key(connection, key)
            e, draws, version = progress.experiment.id, progress.draws, progress.version
            return (
                await time_bounds.first_draw_at(connection, e, at, draws),
                await time_bounds.first_event_at(connection, e, at, version),
            )

    first = workers.now - (len(_MOMENTS) - 1) * 1_000_000
    times = [first + place * 1_000_000 for place, draws in enumerate(_MOMENTS) for _ in range(draws)]
    for at in {time + shift for time in times for shift in (-1, 0, 1)}:
        expected = 1 + sum(time < at for time in times)
        assert workers.run(found(at)) == (expected, expected + 1), "the creation is the first event"
    assert workers.run(found(0)) == (1, 1)
