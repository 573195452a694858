"""What a look has seen is noted only while it is news and still so."""

from __future__ import annotations

from service.application.commands.arms import ChangeArm
from service.application.commands.note_changes import NewLeader, NoteChanges
from testing.workers import TURNS, Workers


def seen(workers: Workers, key: str) -> NoteChanges:
    """A new leader, as seen at the version that is stored."""
    workers.create(key, [("a", 0.0), ("b", 0.0), ("c", 0.0)])
    return NoteChanges(workers.look(key).version, NewLeader(1, None, first=True), [])


def test_another_set_of_arms_makes_it_old(workers: Workers, key: str) -> None:
    """Changed in the same group, or in the one that is on its way to the disk: both came before the note."""
    disabled = ChangeArm("b", {"status": "disabled"})
    for turns in TURNS:
        note = seen(workers, f"{key}-{turns}")
        assert workers.submit_in_two_waves(f"{key}-{turns}", [disabled], [note], turns)[1] is False
        assert workers.replay(f"{key}-{turns}") == 2


def test_it_is_noted_once_in_a_group(workers: Workers, key: str) -> None:
    """Two workers may see the same at once, and their notes may meet."""
    note = seen(workers, key)
    assert workers.submit_together(key, [note, note]) == [True, False]
    assert workers.submit(key, note) is False
