"""A key's first answer: when it is given again, when it is refused, and when it has to be looked for first."""

from __future__ import annotations

from dataclasses import replace

import pytest

from service.application.commands.idempotency import NOTE, Once, OnceCommand
from service.application.commands.tell import Tell, TellAnswer
from service.domain.lookups import LookupRequest, NotLookedUp
from service.errors import AssignmentNotFound, IdempotencyKeyReused
from testing.ledgers import new_ledger

_ONCE: Once[TellAnswer] = Once("route", "key", "hash", creates=False, render=lambda answer: answer.assignment.id.encode())


def test_the_same_again_is_told_what_it_was_told_first() -> None:
    """Nothing happens a second time, and another body under the same key is refused."""
    ledger = new_ledger()
    drawn = ledger.draw(None, None, 0)
    command = OnceCommand(_ONCE, Tell(drawn.id, "reward", 1.0))
    first, version = command.apply(ledger, 0), ledger.version
    again = command.apply(ledger, 0)
    assert (first.written(), first.replayed) == (drawn.id.encode(), False)
    assert (again.written(), again.replayed) == (drawn.id.encode(), True)
    assert ledger.version == version
    with pytest.raises(IdempotencyKeyReused):
        OnceCommand(replace(_ONCE, body_hash="other"), command.command).apply(ledger, 0)


def test_a_refusal_under_a_key_that_nobody_looked_for_is_decided_again() -> None:
    """The first time it may have been answered; once that was looked for, it is a refusal, and no answer is kept of it."""
    ledger = new_ledger()
    command = OnceCommand(_ONCE, Tell("asg_0", "reward", 1.0))
    with pytest.raises(NotLookedUp):
        command.apply(ledger, 0)
    ledger.seen.reply_keys.add(("route", "key"))
    with pytest.raises(AssignmentNotFound):
        command.apply(ledger, 0)
    with pytest.raises(AssignmentNotFound):
        OnceCommand(replace(_ONCE, key=None), command.command).apply(ledger, 0)
    assert ledger.log.replies == []


def test_a_key_is_looked_for_first_only_where_a_refusal_is_likely() -> None:
    """While an experiment runs, its keys are new nearly always: that one was used shows when it is written."""
    ledger, command = new_ledger(), OnceCommand(_ONCE, Tell("asg_0", "reward", 1.0))
    running, paused = LookupRequest(), LookupRequest()
    command.request_lookups(running, ledger)
    ledger.experiment = replace(ledger.experiment, status="paused")
    command.request_lookups(paused, ledger)
    assert (running.reply_keys, running.new_reply_keys) == (set(), {("route", "key")})
    assert (paused.reply_keys, paused.new_reply_keys) == ({("route", "key")}, set())


def test_a_long_answer_is_kept_as_a_note() -> None:
    """A few words of which it can be told again; whoever repeats it gets the note."""
    ledger = new_ledger()
    drawn = ledger.draw(None, None, 0)
    command = OnceCommand(replace(_ONCE, note=lambda _: NOTE + b"1"), Tell(drawn.id, "reward", 1.0))
    assert command.apply(ledger, 0).note is None
    assert [reply.body for reply in ledger.log.replies] == [NOTE + b"1"]
    assert command.apply(ledger, 0).note == NOTE + b"1"
