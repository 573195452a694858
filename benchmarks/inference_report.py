"""Tables and pictures of docs/inference.md from the results of the studies.

    python -m benchmarks.inference_report

Replaces what stands between `<!-- name -->` and `<!-- /name -->` in the page, and draws docs/inference/*.svg.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import vl_convert
from scipy.special import betaincinv

from benchmarks.inference_instances import instances

DOCS = Path(__file__).parent.parent / "docs"
RESULTS = DOCS / "inference"
POLICY_NAMES = {
    "default": "the default",
    "simple_tracking": "Simple Tracking, as in the paper",
    "almost_tracking": "Almost Tracking, as in the paper",
    "uniform": "uniform",
}
ALPHA = 0.05


def load(name: str) -> Any:  # noqa: ANN401 - JSON
    """The results of one study."""
    return json.loads((RESULTS / f"{name}.json").read_text())


def table(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table; all columns but the first to the right."""
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def share(count: int, runs: int) -> str:
    """A share of runs with its exact 95% interval."""
    low = betaincinv(count, runs - count + 1, 0.025) if count else 0.0
    high = betaincinv(count + 1, runs - count, 0.975)
    return f"{count / runs:.4f} ({low:.4f} to {high:.4f})"


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


def rates() -> str:
    """The fewest draws that three sums, and every reward, allow."""
    found = {row["case"]: row for row in load("verdicts") if row["policy"] == "default"}
    cells = [
        [row["case"], *(f"{draws:,.0f}" for draws in (found[row["case"]]["now"], row["three_sums"], row["every_reward"]))]
        for row in load("rates")
    ]
    return table(["means", "median draws now", "three sums, at best", "every reward kept, at best"], cells)


def kept_verdicts() -> str:
    """Verdicts taken back, and wrong ones."""
    cells = [
        [
            row["case"],
            f"{row['runs']:,}",
            f"{row['decided']:,}",
            share(row["wrong"], row["runs"]),
            f"{row['taken_back']}",
            f"{row['changed_arm']}",
            f"{row['contradicted']}",
            f"{row['would_have_gone_back']:,}",
        ]
        for row in load("kept_verdicts")
    ]
    head = ["means", "experiments", "decided", "wrong", "taken back", "another arm", "contrary shown", "would have gone back"]
    return table(head, cells)


def verdicts() -> str:
    """Draws to separation: against the test before, and by the weights of the policy."""

    def draws(median: float | None) -> str:
        return "more" if median is None else f"{median:,.0f}"

    rows = load("verdicts")
    cells = [
        [row["case"], row["kind"], draws(row["before"]), draws(row["now"]), "" if row["ratio"] is None else f"{row['ratio']:.2f}"]
        for row in rows
        if row["policy"] == "default"
    ]
    now: dict[str, dict[str, float | None]] = {}
    for row in rows:
        now.setdefault(row["case"], {})[row["policy"]] = row["now"]
    players = ["default", "s = 1", "s = 1.5", "uniform"]
    by_weights = [[case, *(draws(found[player]) for player in players)] for case, found in now.items() if len(found) > 1]
    head = ["means", "the default (s = 2, guard 1/2)", *players[1:]]
    return f"{table(['means', 'rewards', 'before', 'now', 'ratio'], cells)}\n\n{table(head, by_weights)}"


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


def unequal() -> str:
    """The part of the rewards that the pair test needs, by the ratio of the counts."""
    rows = load("unequal")
    shown = (0.01, 0.1, 0.3333, 1.0, 3.0, 10.0, 100.0)
    parts = {(row["case"], row["ratio"]): row["part"] for row in rows}
    cells = [
        [
            case,
            *(f"{parts[case, ratio]:.2f}" for ratio in shown),
            f"{max(row['part'] for row in rows if row['case'] == case):.2f}",
        ]
        for case in dict.fromkeys(row["case"] for row in rows)
    ]
    ratios = [f"{ratio:g} : 1" if ratio >= 1.0 else f"1 : {round(1.0 / ratio)}" for ratio in shown]
    return table(["arms, counts as", *ratios, "largest"], cells)


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
    verdict_tables = (verdicts, rates, kept_verdicts, unequal)
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
    print(f"{np.datetime64('now')} filled in {page}")


if __name__ == "__main__":
    main()
