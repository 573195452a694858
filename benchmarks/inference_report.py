"""Tables and pictures of docs/inference.md, and a table of docs/guarded-weights.md, from the results of the studies.

    python -m benchmarks.inference_report

Replaces what stands between `<!-- name -->` and `<!-- /name -->` in the page, and draws docs/inference/*.svg.
"""

from __future__ import annotations

import re
import sys
from typing import Any

import numpy as np
import vl_convert

from benchmarks.inference_instances import instances
from benchmarks.inference_tables import DOCS, RESULTS, load, share, table
from benchmarks.inference_verdict_tables import kept_verdicts, rates, unequal, verdict_baselines, verdict_means, verdicts

POLICY_NAMES = {
    "default": "the default",
    "simple_tracking": "Simple Tracking, as in the paper",
    "almost_tracking": "Almost Tracking, as in the paper",
    "uniform": "uniform",
}
ALPHA = 0.05


def draw(name: str, spec: dict[str, Any]) -> None:
    """A Vega-Lite chart as SVG."""
    style = {"$schema": "https://vega.github.io/schema/vega-lite/v5.json", "background": "white"}
    (RESULTS / f"{name}.svg").write_text(vl_convert.vegalite_to_svg(style | spec) + "\n")


def coverage() -> str:
    """Misses and false separations by instance and policy."""
    names = [instance.name for instance in instances()]
    rows = sorted(load("coverage"), key=lambda row: (names.index(row["instance"]), list(POLICY_NAMES).index(row["policy"])))
    values = [
        {"instance": row["instance"], "policy": POLICY_NAMES[row["policy"]], "share": row["runs_with_a_miss"] / row["runs"]}
        for row in rows
    ]
    draw("coverage", bars(values, "share", "share of runs with any miss at any look", ALPHA))
    cells = []
    for row in rows:
        median = row["median_draws_to_separation"]
        cells.append(
            [
                row["instance"] + (f"; `decided`, worthwhile {row['worthwhile']:g}" if row.get("worthwhile") else ""),
                POLICY_NAMES[row["policy"]],
                share(row["runs_with_a_miss"], row["runs"]),
                share(row["runs_with_false_separation"], row["runs"]),
                f"{row['runs_rightly_separated'] / row['runs']:.3f}",
                "" if median is None else f"{median:,.0f}",
            ]
        )
    head = ["means", "policy", "runs with a miss", "false separation", "rightly separated", "median draws to it"]
    worst = max(row["runs_with_a_miss"] / row["runs"] for row in rows)
    false = max(row["runs_with_false_separation"] / row["runs"] for row in rows)
    runs, draws = rows[0]["runs"], rows[0]["draws"]
    claim = (
        f"{len(rows)} pairs of instance and policy, {runs:,} runs of {draws:,} draws each.\nWorst share of runs with a miss: "
        f"**{worst:.4f}**; worst share with a false separation or decision: **{false:.4f}** (allowed: {ALPHA})."
    )
    return f"{claim}\n\n{table(head, cells)}"


def bars(values: list[dict[str, Any]], field: str, title: str, limit: float) -> dict[str, Any]:
    """Bars with the limit as a line; side by side where an instance has several."""
    several = len(values) > len({value["instance"] for value in values})
    encoding: dict[str, Any] = {
        "y": {"field": "instance", "type": "nominal", "sort": None, "title": None, "axis": {"labelLimit": 320}},
        "x": {"field": field, "type": "quantitative", "title": title},
        "color": {"field": "policy", "sort": None, "title": None},
    }
    if several:
        encoding["yOffset"] = {"field": "policy", "sort": None}
    line = {"x": {"field": "limit", "type": "quantitative"}}
    rule = {"data": {"values": [{"limit": limit}]}, "mark": {"type": "rule", "strokeDash": [4, 3]}, "encoding": line}
    return {"layer": [{"data": {"values": values}, "mark": "bar", "encoding": encoding}, rule], "width": 460}


def width() -> str:
    """Ratios of width."""
    study = load("width")
    rows = study["rows"]
    values = [{"instance": row["distribution"], "policy": row["kind"], "ratio": row["ratio"]} for row in rows]
    draw("width", bars(values, "ratio", "width / fixed-time width at the same level, n = 1,000", 1.0))
    cells = [
        [
            row["distribution"],
            row["kind"],
            f"{row['deviation']:.3f}",
            f"{row['width']:.4f}",
            f"{row['ratio']:.2f}",
            *(f"{row[name] / row['fixed_time_width']:.2f}" if name in row else "" for name in ("betting", "coin")),
        ]
        for row in rows
    ]
    return table(["distribution", "kind", "standard deviation", "width", "ratio", "every reward kept", "coin, one look"], cells)


def peeking() -> str:
    """One arm at full alpha."""
    rows = load("peeking")
    named = {"real, Gaussian": "Gaussian", "binary, 0.1": "Bernoulli(.1)"}
    values = [
        {"rewards": count, "share": value, "method": f"{method}, {named[row['instance']]}"}
        for row in rows
        if row["instance"] in named
        for count, ours, naive, _ in row["course"]
        for method, value in (("this service", ours), ("naive t-interval", naive))
    ]
    line = {
        "mark": {"type": "line", "point": True},
        "data": {"values": values},
        "encoding": {
            "x": {"field": "rewards", "type": "quantitative", "scale": {"type": "log"}, "title": "rewards, a look after each"},
            "y": {"field": "share", "type": "quantitative", "title": "share of runs that ever missed"},
            "color": {"field": "method", "title": None, "legend": {"labelLimit": 260}},
        },
    }
    rule = {
        "data": {"values": [{"limit": ALPHA}]},
        "mark": {"type": "rule", "strokeDash": [4, 3]},
        "encoding": {"y": {"field": "limit", "type": "quantitative"}},
    }
    draw("peeking", {"layer": [line, rule], "width": 460, "height": 260})
    cells = [
        [row["instance"], f"{row['ever_missed']:.4f}", f"{row['naive_t_ever_missed']:.3f}", f"{row['false_drift_alarm']:.4f}"]
        for row in rows
    ]
    return table(["rewards", "this service", "naive t-interval", "false drift alarm"], cells)


def calibration() -> str:
    """Deciles of the error estimate."""
    rows = load("calibration")
    values = [
        {"estimate": mean, "observed": observed, "run": f"{POLICY_NAMES[row['policy']]}, K = {row['arms']}"}
        for row in rows
        for _, mean, observed in row["deciles"]
    ]
    axis = {"type": "quantitative", "scale": {"domain": [0, 1]}}
    points = {
        "data": {"values": values},
        "mark": {"type": "point", "filled": True, "size": 50},
        "encoding": {
            "x": {"field": "estimate", "title": "mean estimate of the decile", **axis},
            "y": {"field": "observed", "title": "observed share of wrong leaders", **axis},
            "color": {"field": "run", "sort": None, "title": None, "legend": {"labelLimit": 260}},
        },
    }
    ends = [{"x": 0, "y": 0.05}, {"x": 0.95, "y": 1}]
    limit = {
        "data": {"values": ends},
        "mark": {"type": "line", "strokeDash": [4, 3], "color": "black"},
        "encoding": {"x": {"field": "x", "type": "quantitative"}, "y": {"field": "y", "type": "quantitative"}},
    }
    draw("calibration", {"layer": [points, limit], "width": 380, "height": 380})
    cells = [
        [f"{POLICY_NAMES[row['policy']]}, K = {row['arms']}"]
        + [f"{mean:.3f} / {observed:.3f}" for _, mean, observed in row["deciles"]]
        + [f"{row['largest_shortfall']:+.3f}"]
        for row in rows
    ]
    head = ["policy", *(f"decile {number}" for number in range(1, 11)), "largest shortfall"]
    return table(head, cells)


def speed() -> str:
    """Processor time."""
    cells = [
        [
            f"{row['arms']:,}",
            row["kind"],
            "clear winner" if row["clear_winner"] else "close race",
            *(f"{row[name]:.2f}" for name in ("intervals", "separated", "error_estimate", "drift", "total", "total_fastest")),
            *(f"{row[name]:.2f}" for name in ("worthwhile", "lifts")),
        ]
        for row in load("speed")
    ]
    parts = ["intervals", "separated", "error estimate", "drift", "all, median", "all, fastest"]
    return table(["K", "kind", "case", *parts, "and a worthwhile difference", "and lifts"], cells)


def speed_before() -> str:
    """Processor time over that of another checkout."""
    shown: dict[tuple[int, str], list[str]] = {}
    for row in load("speed_before"):
        shown.setdefault((row["arms"], row["kind"]), []).append(f"{row['median']:.2f} ({row['min']:.2f} to {row['max']:.2f})")
    cells = [[f"{arms:,}", kind, *ratios] for (arms, kind), ratios in shown.items()]
    return table(["K", "kind", "close race", "clear winner", "all equal", "one ahead", "unequal counts"], cells)


def recommendation_speed() -> str:
    """Processor time and waiting of a whole recommendation over those of another checkout."""
    cells = []
    for row in load("recommendation_speed"):
        processor, waited = row["processor"], row["waited"]
        cells.append(
            [
                f"{row['arms']:,}",
                row["kind"],
                row["case"],
                f"{processor['milliseconds']:.1f}",
                f"{processor['milliseconds_of_other']:.1f}",
                *(f"{found['median']:.2f} ({found['min']:.2f} to {found['max']:.2f})" for found in (processor, waited)),
            ]
        )
    return table(["K", "kind", "case", "milliseconds", "of the other", "processor time", "waiting"], cells)


def lift() -> str:
    """Coverage of differences and ratios to the control."""
    order = {"binary": 0, "bounded": 1, "real": 2}
    cells = [
        [
            row["instance"],
            share(row["runs_with_a_missed_difference"], row["runs"]),
            share(row["runs_with_a_missed_ratio"], row["runs"]),
            share(row["runs_with_either"], row["runs"]),
        ]
        for row in sorted(load("lift"), key=lambda row: order[row["kind"]])
    ]
    return table(["means", "a difference missed", "a ratio missed", "either"], cells)


def ville() -> str:
    """Widths and draws beside those of an independent implementation."""
    found = load("ville")
    widths = [
        [row["distribution"], *(f"{row[name]:.4f}" if name in row else "" for name in ("service", "ville", "ville_bernstein"))]
        for row in found["widths"]
    ]
    draws = [
        [row["case"], f"{row['runs']}", *(f"{row[name]:,.0f}" for name in ("service", "ville", "ville_asymptotic"))]
        for row in found["draws"]
    ]
    first = table(["width after 1,000 rewards", "this service", "ville", "ville, empirical Bernstein"], widths)
    return f"{first}\n\n{table(['draws to the verdict', 'runs', 'this service', 'ville', 'ville, asymptotic'], draws)}"


def forecast() -> str:
    """How often forecasts came true, and the middle of the waits beside that of the forecasts' medians."""
    cells = [
        [
            row["case"],
            f"{row['at']:,}",
            f"{row['runs']:,}",
            f"{row['came_true']:.2f}",
            f"{row['sooner']:.2f}",
            f"{row['later']:.2f}",
            f"{row['median_wait']:,.0f}",
            f"{row['median_forecast']:,.0f}",
            f"{row['milliseconds_each']:.0f}",
        ]
        for row in load("forecast")
    ]
    head = ["means", "made after", "forecasts", "came true", "sooner", "later", "median wait", "median forecast"]
    return table([*head, "milliseconds each"], cells)


def replaced(text: str, name: str, section: str) -> str:
    """The page with this section between its marks."""
    filled = f"<!-- {name} -->\n{section}\n<!-- /{name} -->"
    return re.sub(f"<!-- {name} -->.*?<!-- /{name} -->", lambda _: filled, text, flags=re.DOTALL)


def main() -> None:
    """Fill the page in, or the sections that are named."""
    named = sys.argv[1:]
    page = DOCS / "inference.md"
    text = page.read_text()
    verdict_tables = (verdicts, verdict_baselines, rates, kept_verdicts, unequal)
    for section in (
        coverage,
        lift,
        *verdict_tables,
        width,
        ville,
        peeking,
        calibration,
        forecast,
        speed,
        speed_before,
        recommendation_speed,
    ):
        name = section.__name__
        if named and name not in named:
            continue
        if not (RESULTS / f"{name}.json").exists():
            print(f"no results for {name} yet")
            continue
        text = replaced(text, name, section())
    page.write_text(text)
    other = DOCS / "guarded-weights.md"
    other.write_text(replaced(other.read_text(), "verdict_means", verdict_means()))
    print(f"{np.datetime64('now')} filled in {page}")


if __name__ == "__main__":
    main()
