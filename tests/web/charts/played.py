"""Experiments to draw, made of the real ledger, and pictures taken apart again."""

from __future__ import annotations

import json
import random
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree as ET

from service.application.reads.course import Course, Point
from service.application.reads.recommendation import Recommendation, recommend
from service.domain import Arm, ArmRecord, ArmStatistics, Experiment, PolicySpec, Progress, RewardSpec
from service.domain.findings import Finding
from service.engine.ledger import Ledger
from service.engine.snapshots import snapshot_of
from service.inference.certainty import certainty_of, leader_of
from service.web.charts.svg import text_width

_SVG = "{http://www.w3.org/2000/svg}"
HOUR = 3_600_000_000
BEGAN = 1_750_000_000_000_000


def played(
    worth: Sequence[float],
    rounds: int = 40,
    *,
    names: Sequence[str] = (),
    kept: Collection[Finding] = (),
    **settings: Any,  # noqa: ANN401 - any setting of an experiment
) -> tuple[Recommendation, Course]:
    """Every arm gets ten binary rewards a round, an hour apart; they convert as often as they are worth."""
    chance = random.Random(3)  # noqa: S311 - visitors, not secrets
    experiment = Experiment(
        1, "played", "Played", "", PolicySpec(), RewardSpec(), None, False, 0.95, None, "running", None, BEGAN
    )
    experiment = replace(experiment, **settings)
    labels = [*names, *(f"Arm {place}" for place in range(len(names), len(worth)))]
    arms = [Arm(place, f"arm-{place}", label, None) for place, label in enumerate(labels)]
    ledger = Ledger(
        Progress(experiment, version=1, as_of=BEGAN, draws=0, epoch=1), [ArmRecord(arm, ArmStatistics()) for arm in arms]
    )
    points = []
    for number in range(rounds):
        for place, rate in enumerate(worth):
            for _ in range(10):
                ledger.observe(place, float(chance.random() < rate), None, BEGAN + (number + 1) * HOUR)
        leader = leader_of(experiment.reward, ledger.arms, ledger.statistics)
        sure = certainty_of(experiment, ledger.arms, ledger.statistics, leader)
        points.append(Point(snapshot_of(ledger), None if leader is None else arms[leader], sure))
    if not points:
        sure = certainty_of(experiment, ledger.arms, ledger.statistics, None)
        points.append(Point(snapshot_of(ledger), None, sure))
    return recommend(ledger, kept), Course(experiment, ledger.arms, points)


def parsed(picture: bytes) -> ET.Element:
    """The picture as XML."""
    return ET.fromstring(picture)  # noqa: S314 - our own


def words(picture: bytes) -> list[str]:
    """All words that a viewer sees."""
    return [
        "".join(part for part in (one.text, *(child.tail for child in one)) if part)
        for one in parsed(picture).iter(f"{_SVG}text")
    ]


def readings(picture: bytes) -> dict[str, Any]:
    """The numbers behind it."""
    content = parsed(picture).findtext(f"{_SVG}metadata")
    assert content is not None
    found: dict[str, Any] = json.loads(content)
    return found


def lines(picture: bytes) -> list[dict[str, str]]:
    """The attributes of all lines through points."""
    return [one.attrib for one in parsed(picture).iter(f"{_SVG}polyline")]


def require_room(picture: bytes) -> None:
    """No words leave the picture, and none on one height run into each other."""
    root = parsed(picture)
    width = float(root.attrib["width"])
    boxes = []
    for one in root.iter(f"{_SVG}text"):
        shown = "".join(part for part in (one.text, *(child.tail for child in one)) if part)
        size, weight = float(one.attrib.get("font-size", 12)), float(one.attrib.get("font-weight", 400))
        taken = text_width(shown, size, weight)
        start = float(one.attrib["x"]) - {"end": taken, "middle": taken / 2}.get(one.attrib.get("text-anchor", "start"), 0.0)
        assert start >= -0.5, (shown, start)
        assert start + taken <= width + 0.5, (shown, start + taken)
        boxes.append((float(one.attrib["y"]), start, start + taken, shown))
    boxes.sort()
    for (y, _, end, first), (other_y, start, _, second) in pairwise(boxes):
        assert y != other_y or end <= start + 0.5, (first, second)
