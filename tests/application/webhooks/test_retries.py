"""When a message is tried again."""

from __future__ import annotations

from service.application.webhooks.retries import RetrySchedule


def test_pauses_grow_from_seconds_to_a_day() -> None:
    """Nine attempts over about thirty hours, each pause up to a fifth longer or shorter than planned."""
    schedule = RetrySchedule()
    for planned, attempts in zip((5, 20, 80, 320, 1_280, 5_120, 20_480, 81_920), range(1, 9), strict=True):
        pauses = [schedule.pause(attempts) for _ in range(50)]
        assert all(0.8 * planned <= pause <= 1.2 * planned for pause in pauses)
        assert len(set(pauses)) > 1
        assert not schedule.is_over(attempts)
    assert schedule.is_over(9)
    assert RetrySchedule(first_seconds=86_400).pause(9) <= 1.2 * 86_400


def test_no_number_of_attempts_is_too_large() -> None:
    """A message may have been begun often by workers that were stopped."""
    assert RetrySchedule().pause(10**6) <= 1.2 * 86_400
