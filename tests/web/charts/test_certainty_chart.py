"""Progress to the verdict over time."""

from __future__ import annotations

from dataclasses import replace
from math import log

import pytest

from service.domain.findings import Finding
from service.web.charts import draw_certainty, style_for
from service.web.charts.style import SizeName
from tests.web.charts.played import BEGAN, HOUR, played, readings, require_room, words


def found_after(hours: int) -> Finding:
    """Arm 1 is better than arm 0, found so long after the beginning."""
    return Finding("separated", 1, 0, evidence=-log(0.05), level=0.05, sequence=7, at=BEGAN + hours * HOUR)


def test_it_shows_the_evidence_and_no_estimate() -> None:
    """The last number is the verdict's progress, and the estimate, which may say 99% long before, stands nowhere."""
    recommendation, course = played([0.2, 0.3], rounds=12)
    assert recommendation.verdict.state == "leading"
    picture = draw_certainty(style_for("light", "large"), recommendation, course)
    told = readings(picture)["readings"]
    assert told[-1]["values"] == [f"{int(recommendation.verdict.progress * 100)}%", "Arm 1"]
    assert all(one["values"][0] != "100%" for one in told)
    assert "estimate" not in picture.decode()
    assert not {"separated", "decided"} & set(words(picture))


def test_the_verdict_has_its_mark_and_is_kept() -> None:
    """At the time it was found; before that nothing says 100%, from then on everything does."""
    recommendation, course = played([0.1, 0.6], kept=[found_after(30)])
    assert recommendation.verdict.separated_at == BEGAN + 30 * HOUR
    picture = draw_certainty(style_for("light", "large"), recommendation, course)
    assert "separated" in words(picture)
    told = readings(picture)["readings"]
    full = [one["of"] * 1000 >= BEGAN + 30 * HOUR for one in told]
    assert [one["values"][0] == "100%" for one in told] == full
    assert True in full
    assert False in full


def test_a_verdict_that_is_not_kept_yet_has_its_mark_now() -> None:
    """Between a look and the search for findings, up to a second later."""
    recommendation, course = played([0.1, 0.6])
    assert recommendation.verdict.separated
    assert recommendation.verdict.separated_at is None
    assert "separated" in words(draw_certainty(style_for("light", "large"), recommendation, course))


def test_a_decision_without_separation_has_its_mark() -> None:
    """It is called decided, and its progress stays what it is."""
    recommendation, course = played([0.2, 0.21])
    decided = replace(recommendation.verdict, state="decided", reason="nothing_worthwhile", arm=1, since=BEGAN + 9 * HOUR)
    picture = draw_certainty(style_for("light", "large"), replace(recommendation, verdict=decided), course)
    assert "decided" in words(picture)
    assert readings(picture)["readings"][-1]["values"][0] != "100%"


@pytest.mark.parametrize("size", ["small", "large"])
def test_words_have_room(size: SizeName) -> None:
    """Also where the verdict fell at the very end, and the leader has a long name."""
    names = ["测试" * 40, "W" * 80]
    require_room(draw_certainty(style_for("dark", size), *played([0.1, 0.6], names=names, kept=[found_after(40)])))


def test_before_any_reward_it_says_so() -> None:
    """Nobody leads."""
    assert "Too early to tell" in words(draw_certainty(style_for("light", "small"), *played([0.2, 0.4], rounds=0)))
