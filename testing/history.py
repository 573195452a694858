"""A long history with everything in it."""

from __future__ import annotations

import numpy as np

from service.application.commands.arms import AddArm, ChangeArm
from service.application.commands.ask import AskMany
from service.application.commands.expire import Sweep
from service.application.commands.tell import ObservationItem, Observe, RewardItem, Tell, TellMany
from service.domain import Arm
from testing.workers import Workers

_AT_ONCE = 1_000
_HOUR = 3_600_000_000


def write_history(workers: Workers, key: str, draws: int) -> None:
    """Batches of asks told late, a third not at all; corrections, voids, observations, an expiry now and then, arm changes."""
    rng = np.random.default_rng(draws)
    waiting: list[list[str]] = []
    for turn in range(0, draws, _AT_ONCE):
        worker = turn // _AT_ONCE % 2
        count = min(_AT_ONCE, draws - turn)
        answers = workers.submit(key, AskMany([None] * count, by_count=True), worker)
        waiting.append([answer.assignment.id for answer in answers if answer.assignment])
        if len(waiting) > 1:
            told = [name for name in waiting.pop(0) if rng.random() < 0.67]
            rewards = [RewardItem(assignment=name, reward=float(rng.random() < 0.3)) for name in told]
            workers.submit(key, TellMany(rewards), 1 - worker)
            changes = [Tell(name, "correct", float(rng.random() < 0.5)) for name in told[:20]]
            workers.submit_together(key, [*changes, *(Tell(name, "void") for name in told[20:30])], worker)
        names = [arm.arm.key for arm in workers.look(key).standings]
        workers.submit(key, Observe([ObservationItem(names[0], 1.0, f"row-{turn}"), ObservationItem(names[1], 0.0, None)]))
        stage = turn // _AT_ONCE % 10
        if stage == 3:
            workers.submit(key, ChangeArm(names[1], {"status": "disabled"}))
        if stage == 5:
            workers.submit(key, ChangeArm(names[1], {"status": "active"}))
        if stage == 4 and len(names) < 12:
            workers.submit(key, AddArm(Arm(0, f"new-{turn}", "new", None, 0.01)))
        if stage % 5 == 4:
            workers.now += 2 * _HOUR
            while workers.submit(key, Sweep(workers.now)):
                pass
