"""The once-a-second look: what it costs where there is nothing to see."""

from __future__ import annotations

import pytest

from service.application.commands.ask import Ask
from service.application.commands.tell import Tell
from service.application.commands.verdict_watch import VerdictWatch
from service.domain import Expiry
from testing.statements import Statements
from testing.workers import Workers


@pytest.mark.parametrize("expiry", [None, Expiry(3600, 0.0)], ids=["for ever", "a supposed reward"])
def test_it_looks_from_the_first_reward_on(workers: Workers, key: str, expiry: Expiry | None) -> None:
    """Of draws alone nothing can be shown, however many: one statement asks for all news, and none for an experiment without."""
    workers.create(key, [("a", 0.0), ("b", 0.0)], expiry=expiry)
    context = workers.contexts[0]
    watch = VerdictWatch(context)

    def sent() -> int:
        with Statements(context.database) as statements:
            workers.run(watch.run())
        return len(statements)

    drawn = workers.submit(key, Ask(None)).assignment
    assert drawn is not None
    assert (sent() > 1) is (expiry is not None)
    workers.submit(key, Tell(drawn.id, "reward", 1.0))
    assert sent() > 1
    workers.submit(key, Tell(drawn.id, "void"))
    assert sent() > 1, "a leader that is none any more is seen, too"
