"""What drawing a chart costs: each picture of an experiment with 8 arms and 200 points, and with 200 arms."""

from __future__ import annotations

import json
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from service.application.reads.course import Course, Point
from service.application.reads.recommendation import Recommendation, Standing
from service.domain import Arm, Experiment, PolicySpec, Progress, RewardSpec, Snapshot
from service.inference.certainty import Certainty
from service.inference.verdict import verdict
from service.web.charts import draw_certainty, draw_means, draw_traffic, style_for

if TYPE_CHECKING:
    from collections.abc import Callable

RESULT = Path(__file__).parent / "results" / "charts.json"
_POINTS = 200
_ROUNDS = 30


def example(arms: int) -> tuple[Recommendation, Course]:
    """Something to draw."""
    rng = np.random.default_rng(7)
    there = [Arm(place, f"arm-{place}", f"Arm number {place}", None) for place in range(arms)]
    experiment = Experiment(1, "drawn", "Drawn", "", PolicySpec(), RewardSpec(), None, False, 0.95, None, "running", None, 0)
    shares = rng.dirichlet(np.full(arms, 40.0), _POINTS)
    points = []
    for number, share in enumerate(shares):
        draws = [int(one * 1000) * (number + 1) for one in share]
        sure = Certainty(
            intervals=[(0.1, 0.3)] * arms,
            evidence=[None, *[min(1.0, 0.004 * number)] * (arms - 1)],
            separated=False,
            decided=False,
            error_estimate=float(0.8 / (1 + number / 10)),
            counts=draws,
            lifts=[None] * arms,
        )
        snapshot = Snapshot(
            number + 1,
            number * 1_000_000,
            draws,
            draws,
            [0.2] * arms,
            draws,
            [0.2] * arms,
            [0.16] * arms,
            list(share),
            [True] * arms,
        )
        points.append(Point(snapshot, there[number // 50 % arms], sure))
    standings = [
        Standing(arm, 100, 5, 0, 95, 0.2 + arm.position / 999, 0.16, (0.1, 0.3), 0.5, False, None, 1 / arms, 1 / arms)
        for arm in there
    ]
    progress = Progress(experiment, version=_POINTS, as_of=_POINTS * 1_000_000, draws=1000, epoch=1)
    judged = verdict(experiment, there, points[-1].certainty, 0)
    recommendation = Recommendation(progress, there[0], there[1], 0.01, "", judged, "", [], 0.05, [], None, standings, [])
    return recommendation, Course(experiment, there, points)


def milliseconds(draw: Callable[[], bytes]) -> dict[str, float]:
    """Median time and size."""
    times = []
    for _ in range(_ROUNDS):
        began = time.process_time()
        picture = draw()
        times.append(time.process_time() - began)
    return {"milliseconds": round(median(times) * 1e3, 2), "kilobytes": round(len(picture) / 1e3, 1)}


def main() -> None:
    """Draw, print, keep."""
    style = style_for("light", "large")
    found = {}
    for arms in (8, 200):
        recommendation, course = example(arms)
        found[f"{arms} arms"] = {
            "means": milliseconds(lambda: draw_means(style, recommendation)),  # noqa: B023 - called at once
            "traffic": milliseconds(lambda: draw_traffic(style, recommendation, course)),  # noqa: B023 - called at once
            "certainty": milliseconds(lambda: draw_certainty(style, recommendation, course)),  # noqa: B023 - called at once
        }
    written = json.dumps(found, indent=2) + "\n"
    RESULT.write_text(written)
    print(written)


if __name__ == "__main__":
    main()
