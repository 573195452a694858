"""What is decided while the last group is on its way to the disk, and what becomes of it if that group fails."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from service.application.commands.arms import AddArm
from service.application.commands.ask import Ask, AskAnswer, AskMany, note_of
from service.application.commands.idempotency import Once, OnceCommand, Rendered
from service.application.commands.tell import RewardItem, Tell, TellAnswer, TellMany
from service.domain import Arm
from service.domain.callers import SERVICE, Scope
from service.domain.lookups import LookupRequest
from service.engine import ledger_cache
from service.engine.ledger import Ledger
from service.engine.queue import LARGEST_GROUP, Command
from service.errors import RewardConflict
from service.web.fast_path.recogniser import FastRequest
from testing.workers import TURNS, Workers


class Witness:
    """A command that notes each time it is decided whether another one was answered by then."""

    def __init__(self, command: Command[Any], earlier: asyncio.Future[Any] | None = None) -> None:
        self.command, self.earlier = command, earlier
        self.seen: list[bool] = []

    @property
    def scope(self) -> Scope:
        """The command's own."""
        return self.command.scope

    @property
    def by_unit(self) -> bool:
        """The command's own."""
        return self.command.by_unit

    @property
    def weight(self) -> int:
        """The command's own."""
        return self.command.weight

    def request_lookups(self, lookups: LookupRequest, ledger: Ledger) -> None:
        """The same."""
        self.command.request_lookups(lookups, ledger)

    def apply(self, ledger: Ledger, now: int) -> Any:  # noqa: ANN401 - the command's own
        """Note, and decide."""
        self.seen.append(self.earlier is not None and self.earlier.done())
        return self.command.apply(ledger, now)


class DefectiveRequest:
    """A command with a defect that shows only after it has changed something."""

    weight = 1
    scope: Scope = "assign"
    by_unit = False

    def request_lookups(self, lookups: LookupRequest, ledger: Ledger) -> None:
        """Nothing."""

    def apply(self, ledger: Ledger, now: int) -> None:
        """Draw, and fail."""
        ledger.draw(None, None, now)
        raise RuntimeError("a defect")


def draws(answers: Sequence[AskAnswer]) -> list[int]:
    """The numbers of the draws."""
    return [answer.assignment.draw for answer in answers if answer.assignment]


def test_the_next_group_is_decided_while_the_last_one_is_written(workers: Workers, key: str) -> None:
    """Before its answer is known, and in order."""
    workers.create(key, [("a", 0.0), ("b", 0.0)])
    workers.submit(key, Ask(None))

    async def one_after_the_other() -> tuple[list[AskAnswer], list[bool]]:
        first = workers.enqueue(key, Ask(None))
        for _ in range(2):
            await asyncio.sleep(0)
        witness = Witness(Ask(None), first)
        return [await workers.enqueue(key, witness), await first], witness.seen

    answers, seen = workers.run(one_after_the_other())
    assert seen == [False]
    assert draws(answers) == [3, 2]
    assert workers.replay(key) == 4


def test_decisions_ahead_of_an_outrun_group_are_made_anew(workers: Workers, key: str) -> None:
    """The other worker drew meanwhile, which nobody here knew: no number is given twice, none is left out."""
    decided: set[int] = set()
    for turns in TURNS:
        name = f"{key}-{turns}"
        workers.create(name, [("a", 0.0), ("b", 0.0)])
        workers.submit(name, Ask("known to both"))
        workers.submit(name, Ask("known to both"), worker=1)
        workers.submit(name, Ask("known to the other"), worker=1)
        second = [Witness(Ask(f"u{number}", f"k{number}")) for number in range(20)]
        answers = workers.submit_in_two_waves(name, [Ask("outrun", "k")], second, turns)
        assert draws(answers) == list(range(4, 25))
        assert [answer.unit for answer in answers] == ["outrun", *(f"u{number}" for number in range(20))]
        assert workers.replay(name) == 25
        decided |= {len(one.seen) for one in second}
    assert 2 in decided


def test_a_defect_ahead_harms_nobody_else(workers: Workers, key: str) -> None:
    """It fails alone, and what it changed before it failed is not kept."""
    for turns in TURNS:
        name = f"{key}-{turns}"
        workers.create(name, [("a", 0.0), ("b", 0.0)])
        workers.submit(name, Ask(None))
        answers = workers.submit_in_two_waves(name, [Ask(None)], [Ask(None), DefectiveRequest(), Ask(None)], turns)
        assert isinstance(answers.pop(2), RuntimeError)
        assert draws(answers) == [2, 3, 4]
        assert workers.replay(name) == 5


def test_a_batch_decided_in_part_is_not_kept(workers: Workers, key: str) -> None:
    """Its second reward is for an arm that another worker added: nothing of the first is left when it is decided again."""
    found: set[int] = set()

    class Began(Witness):
        def apply(self, ledger: Ledger, now: int) -> Any:  # noqa: ANN401 - the command's own
            found.add(len(ledger.log.steps))
            return super().apply(ledger, now)

    decided = 0
    for turns in TURNS:
        name, other = f"{key}-{turns}", f"{key}-{turns}-other"
        workers.create(name, [("a", 0.0)])
        workers.create(other, [("a", 0.0)])
        known = workers.submit(name, Ask(None)).assignment
        workers.submit(other, Ask(None))
        workers.submit(name, AddArm(Arm(0, "b", "b", None)), worker=1)
        new = [answer.assignment for answer in workers.submit(name, AskMany([None] * 4, by_count=True), worker=1)]
        unknown = next(one for one in new if one and one.arm == 1)
        assert known is not None
        batch = Began(TellMany([RewardItem(assignment=one.id, reward=1.0) for one in (known, unknown)]))
        answers = workers.submit_in_two_waves(other, [Ask(None)], [batch], turns, second_key=name)
        assert [one.status for one in answers[1]] == ["recorded", "recorded"]
        assert workers.replay(name) == 1 + 1 + 1 + 4 + 2
        decided = max(decided, len(batch.seen))
    assert found == {0}
    assert decided > 1  # ahead, in part


def test_a_plain_request_with_a_defect_is_answered_once(workers: Workers, key: str) -> None:
    """Though its group is decided again without it; those beside it are answered, too, and leave nothing behind."""
    workers.create(key, [("a", 0.0), ("b", 0.0)])
    answers: list[tuple[bytes, bool]] = []

    def note(request: FastRequest, result: object, failure: Exception | None) -> None:
        answers.append((request.name, failure is None and result is not None))

    async def together() -> None:
        for name, command in ((b"x", Ask(None)), (b"bad", DefectiveRequest()), (b"y", Ask(None))):
            request = FastRequest(SERVICE, key, Ask(None), name, "")
            request.answer = note
            workers.contexts[0].writer.enqueue(SERVICE, key, command, request)
        await asyncio.wait_for(workers.contexts[0].writer.close(), 30)

    workers.run(together())
    assert sorted(answers) == [(b"bad", False), (b"x", True), (b"y", True)]
    workers.restart()
    assert workers.replay(key) == 3


def test_decisions_ahead_of_a_refused_group_are_made_anew(workers: Workers, key: str) -> None:
    """The first group is written one by one after all, and what came meanwhile after it."""
    for turns in TURNS:
        name = f"{key}-{turns}"
        workers.create(name, [("a", 0.0), ("b", 0.0)])
        workers.submit(name, Ask(None))
        answers = workers.submit_in_two_waves(name, [Ask("one"), Ask("lone \ud800 surrogate")], [Ask("two"), Ask("three")], turns)
        assert isinstance(answers.pop(1), Exception)
        assert draws(answers) == [2, 3, 4]
        assert workers.replay(name) == 5


def test_what_is_read_ahead_is_not_older_than_what_is_being_written(workers: Workers, key: str) -> None:
    """Rewards of draws that nobody has in mind any more: the same again counts once, another value is a conflict."""
    for turns in TURNS:
        name = f"{key}-{turns}"
        workers.create(name, [("a", 0.0), ("b", 0.0)])
        ids = [answer.assignment.id for answer in workers.submit(name, AskMany([None] * 40, by_count=True)) if answer.assignment]
        workers.restart()
        first = [Tell(one, "reward", 1.0) for one in ids[:10]]
        second = [Tell(one, "reward", 1.0) for one in ids[:20]]
        answers = workers.submit_in_two_waves(name, first, [*second, Tell(ids[0], "reward", 0.0), Tell(ids[25], "void")], turns)
        assert isinstance(answers[30], RewardConflict)
        assert all(isinstance(answer, TellAnswer) for answer in answers[:30] + answers[31:])
        assert workers.replay(name) == 1 + 40 + 20 + 1  # created, the draws, the rewards, the void


def test_what_was_in_mind_when_it_was_looked_at_is_still_there(
    workers: Workers, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reward of a draw that the next group would forget, behind one that has to be looked up."""
    monkeypatch.setattr(ledger_cache, "_RECENT_DRAWS", 8)
    for turns in TURNS:
        name = f"{key}-{turns}"
        workers.create(name, [("a", 0.0), ("b", 0.0)])
        drawn = [answer.assignment for answer in workers.submit(name, AskMany([None] * 12, by_count=True))]
        ids = [one.id for one in drawn if one]
        second = [Tell(ids[0], "reward", 1.0), Tell(ids[-1], "reward", 1.0)]
        answers = workers.submit_in_two_waves(name, [AskMany([None] * 10, by_count=True)], second, turns)
        assert [type(answer) for answer in answers[1:]] == [TellAnswer, TellAnswer]


def test_a_batch_with_a_key_takes_effect_once(workers: Workers, key: str) -> None:
    """Sent again while it is being written, and after it, to either worker."""
    for turns in TURNS:
        name = f"{key}-{turns}"
        workers.create(name, [("a", 0.0), ("b", 0.0)])
        workers.submit(name, Ask(None))
        once: Once[list[AskAnswer]] = Once(
            "batch", "once", "hash", creates=True, render=lambda answers: repr(draws(answers)).encode(), note=note_of
        )
        batch = OnceCommand(once, AskMany([None] * 5, by_count=True))
        answers: list[Rendered] = workers.submit_in_two_waves(name, [batch], [Ask(None), batch], turns)
        assert answers[0].written() == b"[2, 3, 4, 5, 6]"
        assert not answers[0].replayed
        assert answers[2].replayed
        assert workers.submit(name, batch, worker=1).replayed
        assert workers.submit(name, batch).replayed
        assert workers.replay(name) == 1 + 1 + 5 + 1


def test_what_was_seen_is_forgotten_with_its_group(workers: Workers, key: str) -> None:
    """However long the groups follow one another, each looking ahead: what they saw does not add up."""
    workers.create(key, [("a", 0.0), ("b", 0.0)])
    drawn = [answer.assignment for answer in workers.submit(key, AskMany([None] * 3_000, by_count=True))]
    workers.restart()  # so that the draws must be looked up
    workers.submit(key, Ask(None))
    sizes = []

    class Measured(Witness):
        def apply(self, ledger: Ledger, now: int) -> Any:  # noqa: ANN401 - the command's own
            sizes.append(len(ledger.seen.assignments))
            return super().apply(ledger, now)

    async def one_group_after_the_other() -> list[Any]:
        sent = []
        for start in range(0, len(drawn), 10):
            told = [Measured(Tell(one.id, "reward", 1.0)) for one in drawn[start : start + 10] if one]
            sent += [workers.enqueue(key, one) for one in told]
            await asyncio.sleep(0.001)
        return await asyncio.gather(*sent)

    assert len(workers.run(one_group_after_the_other())) == len(drawn)
    assert max(sizes) <= 2 * LARGEST_GROUP  # the group on its way, and the one that is decided meanwhile
    assert workers.replay(key) == 6_002
