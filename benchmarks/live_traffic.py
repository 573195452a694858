"""What late, lost and silent rewards and changing arms cost: the studies behind docs/live-traffic.md (`make bench-live`).

Simple Tracking runs in the compiled loop of live_kernel.py, Almost Tracking through service/policy itself. Everything is
seeded; run r of every cell sees the same noise, so that cells differ by what they study and not by luck.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import typer
from rich.progress import Progress

from benchmarks.live_kernel import DROP, GRID, SILENT, WAIT, ZERO, simulate
from service.policy.almost_tracking import AlmostTracking
from service.policy.base import Evidence
from service.policy.plan import Plan

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "live_traffic.json"
PAGE = HERE.parent / "docs" / "live-traffic.md"
SEED = 20_240_611

# Means of the paper's instances 4, 7 and 9 (40 arms, Gaussian rewards of unit variance), by groups of equal arms.
INSTANCES: dict[int, list[float]] = {}
# Budgets at which the synchronous policy errs in about one run of ten or twenty, so that a cost would show.
BUDGETS = {4: 4000, 7: 5000, 9: 1000}
DELAYS = (0, 50, 500)
LOSSES = (0.0, 0.3)
DROPPED_AFTER = 1_000

NO_CHANGES = np.zeros((0, 3), np.int64)
NEVER = 1 << 60


def wilson(errors: int, runs: int) -> tuple[float, float]:
    """The 95% Wilson interval of a proportion."""
    z = 1.959964
    centre = (errors + z * z / 2) / (runs + z * z)
    half = z / (runs + z * z) * sqrt(errors * (runs - errors) / runs + z * z / 4)
    return max(0.0, centre - half), min(1.0, centre + half)


def proportion(errors: int, runs: int) -> dict[str, Any]:
    """Errors, runs, and the proportion with its interval."""
    low, high = wilson(errors, runs)
    return {"errors": errors, "runs": runs, "error": errors / runs, "low": round(low, 4), "high": round(high, 4)}


# -- 1. Late and lost rewards on the paper's instances ----------------------------------------------------------------


def gaussian_traffic(run: int, horizon: int, delay: int, loss: float) -> tuple[np.ndarray, np.ndarray]:
    """Noise and lateness of each draw of a run."""
    rng = np.random.default_rng([SEED, run])
    noise, luck = rng.standard_normal(horizon), rng.random(horizon)
    return noise, np.where(luck < loss, SILENT, delay).astype(np.int64)


def simple_errors(
    means: np.ndarray, horizon: int, delay: int, loss: float, runs: int, *, pending: bool = True, drop: bool = False
) -> dict[str, Any]:
    """How often Simple Tracking recommends a wrong arm: when the last draw was made, and when the last reward is in."""
    best, wrong = int(means.argmax()), np.zeros(2, np.int64)
    everyone, looks = np.ones(len(means), np.bool_), np.array([horizon])
    silence, window = (DROP, DROPPED_AFTER) if drop else (WAIT, 0)
    for run in range(runs):
        noise, lateness = gaussian_traffic(run, horizon, delay, loss)
        _, leaders, _, _ = simulate(
            means, noise, lateness, False, silence, window, False, pending, True, NO_CHANGES, everyone, looks, NEVER
        )
        wrong += leaders != best
    return {"at_last_draw": proportion(int(wrong[0]), runs), "all_told": proportion(int(wrong[1]), runs)}


def handed_out(plan: Plan) -> np.ndarray:
    """The arms of a batch in the order of its passes."""
    passes = [np.flatnonzero(plan.planned > done) for done in range(int(plan.planned.max()))]
    return np.concatenate(passes)


def almost_errors(means: np.ndarray, horizon: int, delay: int, loss: float, runs: int) -> dict[str, Any]:
    """The same for Almost Tracking, batch by batch through service/policy."""
    arms, best = len(means), int(means.argmax())
    nobody, no_floors = np.zeros(arms, np.bool_), np.zeros(arms)
    wrong = np.zeros(2, np.int64)
    for run in range(runs):
        noise, lateness = gaussian_traffic(run, horizon, delay, loss)
        told_at = np.where(lateness == SILENT, NEVER, np.arange(horizon) + 1 + lateness)
        policy, plan = AlmostTracking(seed=run), Plan.before_first(arms)
        drawn, rewards = np.zeros(0, np.int64), np.zeros(0)

        def known(ask: int) -> np.ndarray:
            told = told_at[: len(drawn)] <= ask  # noqa: B023 - used at once
            counts = np.bincount(drawn[told], minlength=arms)  # noqa: B023
            sums = np.bincount(drawn[told], rewards[told], minlength=arms)  # noqa: B023
            return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)

        while len(drawn) < horizon:
            evidence = Evidence(known(len(drawn)), np.bincount(drawn, minlength=arms), nobody, no_floors)
            plan = policy.next_plan(evidence, lambda: policy.targets(evidence), plan)  # noqa: B023 - used at once
            batch = handed_out(plan)[: horizon - len(drawn)]
            fresh = means[batch] + noise[len(drawn) : len(drawn) + len(batch)]
            drawn = np.concatenate([drawn, batch])
            rewards = np.concatenate([rewards, np.rint(fresh * GRID) / GRID])
        wrong += [int(np.nanargmax(known(ask)) != best) for ask in (horizon, NEVER - 1)]
    return {"at_last_draw": proportion(int(wrong[0]), runs), "all_told": proportion(int(wrong[1]), runs)}


def late_and_lost(runs: int, bar: Progress) -> list[dict[str, Any]]:
    """Every instance, delay and loss, for the policies and the variant that ignores pending draws."""
    cells = [(number, delay, loss) for number in BUDGETS for loss in LOSSES for delay in DELAYS]
    task = bar.add_task("late and lost rewards", total=len(cells))
    found = []
    for number, delay, loss in cells:
        means, horizon = np.array(INSTANCES[number]), BUDGETS[number]
        told = round((horizon - delay) * (1 - loss))
        cell = {
            "instance": number,
            "draws": horizon,
            "delay": delay,
            "lost": loss,
            "simple": simple_errors(means, horizon, delay, loss, runs),
            "synchronous_with_as_many_rewards": simple_errors(means, told, 0, 0.0, runs),
            "ignoring_pending": simple_errors(means, horizon, delay, loss, runs // 2, pending=False),
            "almost": almost_errors(means, horizon, delay, loss, runs // 2),
        }
        if loss:
            cell["dropped_after_1000"] = simple_errors(means, horizon, delay, loss, runs // 2, drop=True)
        found.append(cell)
        bar.advance(task)
    return found


# -- 2. Conversions come fast, their absence only at expiry -----------------------------------------------------------

CONVERSIONS = {"arms": 10, "rate": 0.05, "best_rate": 0.08, "told_after": 50, "window": 10_000, "draws": 30_000}
LOOKS = (2_000, 5_000, 10_000, 20_000, 30_000)


def conversion_traffic(run: int, horizon: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Luck and lateness of each draw, and which arm is best."""
    rng = np.random.default_rng([SEED, 2, run])
    luck = rng.random(horizon)
    lateness = np.minimum(rng.geometric(1 / CONVERSIONS["told_after"], horizon), int(CONVERSIONS["window"]) - 1)
    return luck, lateness.astype(np.int64), int(rng.integers(int(CONVERSIONS["arms"])))


def conversions(runs: int, bar: Progress) -> dict[str, Any]:
    """The live rule, the synchronous loop, and zeros counted only when they expire."""
    variants = {
        "live": (ZERO, int(CONVERSIONS["window"]), True),
        "synchronous": (WAIT, 0, False),
        "all_told_late": (WAIT, 0, False),
        "zeros_only_at_expiry": (ZERO, int(CONVERSIONS["window"]), False),
    }
    task = bar.add_task("conversions and silence", total=len(variants) * runs)
    horizon, arms = int(CONVERSIONS["draws"]), int(CONVERSIONS["arms"])
    found: dict[str, Any] = {}
    for name, (silence, window, impute) in variants.items():
        wrong = np.zeros(len(LOOKS), np.int64)
        flooded, flooded_runs, largest = np.zeros(runs, np.int64), 0, np.zeros(runs)
        for run in range(runs):
            luck, lateness, best = conversion_traffic(run, horizon)
            rates = np.full(arms, CONVERSIONS["rate"])
            rates[best] = CONVERSIONS["best_rate"]
            late = np.zeros_like(lateness) if name == "synchronous" else lateness
            everyone = np.ones(arms, np.bool_)
            drawn, leaders, flooded[run], at_end = simulate(
                rates, luck, late, True, silence, window, impute, True, True, NO_CHANGES, everyone, np.array(LOOKS), 1_000
            )
            wrong += leaders[:-1] != best
            flooded_runs += bool(at_end)
            largest[run] = np.bincount(drawn, minlength=arms).max() / horizon
            bar.advance(task)
        found[name] = {
            "errors": {str(look): proportion(int(count), runs) for look, count in zip(LOOKS, wrong, strict=True)},
            "draws_with_an_arm_above_twice_its_target": float(flooded.sum() / runs / (horizon - 1_000)),
            "the_same_in_the_worst_run": float(flooded.max() / (horizon - 1_000)),
            "runs_that_end_so": flooded_runs,
            "largest_share_mean": float(largest.mean()),
            "largest_share_max": float(largest.max()),
        }
    return {"setting": CONVERSIONS, "runs": runs} | found


# -- 3. Arms come and go -----------------------------------------------------------------------------------------------

CHANGED_AT = 100_000
BACK_AT = 110_000
COURSE = (100, 1_000, 5_000, 10_000, 20_000, 50_000)


def course_of(drawn: np.ndarray, arm: int, start: int, arms: int) -> dict[str, Any]:
    """Traffic after `start`, piece by piece: the arm's share, and the least part of its former traffic that another arm kept."""
    others = np.delete(np.arange(arms), arm)
    former = drawn[CHANGED_AT:start] if start > CHANGED_AT else drawn[:start]
    before = np.bincount(former, minlength=arms)[others] / len(former)
    pieces: dict[str, Any] = {}
    begin = 0
    for end in COURSE:
        piece = drawn[start + begin : start + end]
        if len(piece) < end - begin:
            break
        shares = np.bincount(piece, minlength=arms) / len(piece)
        kept = shares[others] / np.maximum(before, 1e-12)
        pieces[f"{begin}-{end}"] = {"arm": float(shares[arm]), "others": float(shares[others].sum()), "kept": float(kept.min())}
        begin = end
    return pieces


def averaged(courses: list[dict[str, Any]]) -> dict[str, Any]:
    """The mean course over runs, with the least and the largest share of the arm."""
    pieces = {}
    for piece in courses[0]:
        shares = np.array([course[piece]["arm"] for course in courses])
        kept = np.array([course[piece]["kept"] for course in courses])
        pieces[piece] = {
            "arm": float(shares.mean()),
            "arm_min": float(shares.min()),
            "arm_max": float(shares.max()),
            "others": float(1 - shares.mean()),
            "least_kept_by_another": float(kept.mean()),
        }
    return pieces


def changing_rates(*, newcomer_best: bool) -> np.ndarray:
    """Ten arms of which the last one comes late: at .05, one at .065, the newcomer at .08 or .05."""
    rates = np.full(10, 0.05)
    rates[3] = 0.065
    rates[9] = 0.08 if newcomer_best else 0.05
    return rates


def one_changing_run(rates: np.ndarray, changes: np.ndarray, present: np.ndarray, run: int, *, epochs: bool) -> Any:  # noqa: ANN401
    """(arm of each draw, recommendation at the end of each piece of the course)."""
    horizon = CHANGED_AT + COURSE[-1]
    rng = np.random.default_rng([SEED, 3, run])
    luck = rng.random(horizon)
    lateness = np.minimum(rng.geometric(1 / 50, horizon), 9_999).astype(np.int64)
    looks = np.array([CHANGED_AT + end for end in COURSE])
    drawn, leaders, _, _ = simulate(rates, luck, lateness, True, ZERO, 10_000, True, True, epochs, changes, present, looks, NEVER)
    return drawn, leaders[:-1]


def changing_arms(runs: int, bar: Progress) -> dict[str, Any]:
    """An arm added after 100,000 draws (best or not), and one disabled then and enabled again."""
    added = np.array([[CHANGED_AT, 9, 1]])
    returned = np.array([[CHANGED_AT, 5, 0], [BACK_AT, 5, 1]])
    everyone = np.ones(10, np.bool_)
    before = everyone.copy()
    before[9] = False
    stories = {
        "added_best": (changing_rates(newcomer_best=True), added, before, 9, CHANGED_AT),
        "added_not_best": (changing_rates(newcomer_best=False), added, before, 9, CHANGED_AT),
        "disabled_and_enabled": (changing_rates(newcomer_best=False), returned, everyone, 5, BACK_AT),
    }
    task = bar.add_task("changing arms", total=len(stories) * 2 * runs)
    found: dict[str, Any] = {"runs": runs, "changed_at": CHANGED_AT, "enabled_again_at": BACK_AT}
    for name, (rates, changes, present, arm, start) in stories.items():
        for epochs in (True, False):
            courses, right = [], np.zeros(len(COURSE), np.int64)
            for run in range(runs):
                drawn, leaders = one_changing_run(rates, changes, present, run, epochs=epochs)
                courses.append(course_of(drawn, arm, start, 10))
                right += leaders == int(rates.argmax())
                bar.advance(task)
            found[name if epochs else f"{name}_without_epochs"] = {
                "course": averaged(courses),
                "best_recommended": {str(end): float(count / runs) for end, count in zip(COURSE, right, strict=True)},
            }
    return found | {"almost_tracking": almost_changing(max(4, runs // 25), bar)}


def almost_changing(runs: int, bar: Progress) -> dict[str, Any]:
    """The newcomer under Almost Tracking: the same traffic, draw by draw through service/policy."""
    rates, arms = changing_rates(newcomer_best=True), 10
    horizon = CHANGED_AT + 20_000
    task = bar.add_task("changing arms, Almost Tracking", total=runs)
    courses, right = [], 0
    for run in range(runs):
        rng = np.random.default_rng([SEED, 3, run])
        luck, lateness = rng.random(horizon), rng.geometric(1 / 50, horizon)
        policy, drawn = AlmostTracking(seed=run), np.zeros(horizon, np.int64)
        sums, counts = np.zeros(arms), np.zeros(arms, np.int64)
        due: dict[int, list[int]] = {}
        plan, present = Plan.before_first(9), 9
        for ask in range(horizon):
            for arm in due.pop(ask, ()):
                sums[arm] += 1
            if ask == CHANGED_AT:  # the running plan goes on, the average starts anew, the newcomer is drawn once beside it
                present = arms
                wider = [np.append(part, 0) for part in (plan.planned, plan.left)]
                plan = Plan(plan.batch, wider[0], wider[1], plan.cursor, np.zeros(arms), 0)
            seen = counts[:present]
            with np.errstate(invalid="ignore"):
                evidence = Evidence(sums[:present] / seen, seen, seen == 0, np.zeros(present))
            choice, chosen_plan = policy.choose(evidence, lambda: policy.targets(evidence), plan)  # noqa: B023 - used at once
            plan = chosen_plan or plan
            drawn[ask] = choice.index
            counts[choice.index] += 1
            if luck[ask] < rates[choice.index]:
                due.setdefault(ask + 1 + int(lateness[ask]), []).append(choice.index)
        courses.append(course_of(drawn, 9, CHANGED_AT, arms))
        right += int((sums / counts).argmax() == arms - 1)
        bar.advance(task)
    return {"runs": runs, "added_best": {"course": averaged(courses), "best_recommended": {"20000": right / runs}}}


# -- the page ----------------------------------------------------------------------------------------------------------


def shown(value: dict[str, Any]) -> str:
    """`.051 [.042, .062]`."""
    return f"{value['error']:.3f} [{value['low']:.3f}, {value['high']:.3f}]".replace("0.", ".")


def tables(found: dict[str, Any]) -> dict[str, str]:
    """The tables of docs/live-traffic.md by name."""
    late = [
        "| instance | draws | late by | lost | Simple Tracking | as many at once | pending ignored | Almost Tracking | dropped |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for cell in found["late_and_lost"]:
        dropped = shown(cell["dropped_after_1000"]["at_last_draw"]) if "dropped_after_1000" in cell else ""
        columns = [
            cell[name]["at_last_draw"] for name in ("simple", "synchronous_with_as_many_rewards", "ignoring_pending", "almost")
        ]
        late.append(
            f"| {cell['instance']} | {cell['draws']:,} | {cell['delay']} | {cell['lost']:.0%} | "
            + " | ".join(shown(column) for column in columns)
            + f" | {dropped} |"
        )
    silent = found["conversions"]
    names = {
        "live": "live",
        "synchronous": "synchronous",
        "all_told_late": "zeros told as late as ones",
        "zeros_only_at_expiry": "zeros only when they expire",
    }
    conversion = [
        "| | "
        + " | ".join(f"error at {int(look):,}" for look in silent["live"]["errors"])
        + " | draws with an arm above twice its "
        "target | worst run | runs that end so | largest share (mean, max) |",
        "|---|" + "---|" * (len(silent["live"]["errors"]) + 4),
    ]
    for name, label in names.items():
        row = silent[name]
        conversion.append(
            f"| {label} | "
            + " | ".join(shown(value) for value in row["errors"].values())
            + f" | {row['draws_with_an_arm_above_twice_its_target']:.4%} | {row['the_same_in_the_worst_run']:.3%}"
            + f" | {row['runs_that_end_so']} of {silent['runs']}"
            + f" | {row['largest_share_mean']:.2f}, {row['largest_share_max']:.2f} |"
        )
    changing = found["changing_arms"]
    stories = {
        "added_best": "added, best",
        "added_best_without_epochs": "the same without epochs",
        "added_not_best": "added, not best",
        "disabled_and_enabled": "disabled, enabled again",
        "disabled_and_enabled_without_epochs": "the same without epochs",
    }
    pieces = list(changing["added_best"]["course"])
    course = ["| the arm's share in draws | " + " | ".join(pieces) + " |", "|---|" + "---|" * len(pieces)]
    kept = ["| least part kept by another arm | " + " | ".join(pieces) + " |", "|---|" + "---|" * len(pieces)]
    rows = [(label, changing[name]["course"]) for name, label in stories.items()]
    rows.append(("added, best, Almost Tracking", changing["almost_tracking"]["added_best"]["course"]))
    for label, row in rows:
        known = [row.get(piece) for piece in pieces]
        course.append(f"| {label} | " + " | ".join(f"{one['arm']:.3f}" if one else "" for one in known) + " |")
        kept.append(f"| {label} | " + " | ".join(f"{one['least_kept_by_another']:.2f}" if one else "" for one in known) + " |")
    ends = list(changing["added_best"]["best_recommended"])
    best = ["| best arm recommended after | " + " | ".join(f"{int(end):,}" for end in ends) + " |", "|---|" + "---|" * len(ends)]
    for name, label in stories.items():
        best.append(f"| {label} | " + " | ".join(f"{value:.2f}" for value in changing[name]["best_recommended"].values()) + " |")
    last = changing["almost_tracking"]
    best.append(
        "| added, best, Almost Tracking | "
        + " | ".join(f"{last['added_best']['best_recommended'][end]:.2f}" if end == "20000" else "" for end in ends)
        + " |"
    )
    return {
        "late and lost": "\n".join(late),
        "conversions": "\n".join(conversion),
        "course": "\n".join(course),
        "kept": "\n".join(kept),
        "found": "\n".join(best),
    }


def write_page(found: dict[str, Any]) -> None:
    """Put the tables between their markers on the page."""
    page = PAGE.read_text()
    for name, table in tables(found).items():
        head, rest = page.split(f"<!-- {name} -->\n", 1)
        _, tail = rest.split("<!-- end -->", 1)
        page = f"{head}<!-- {name} -->\n{table}\n<!-- end -->{tail}"
    PAGE.write_text(page)


def main(runs: int = 1_000, only: str | None = None, only_page: bool = False) -> None:  # noqa: FBT001, FBT002 - flags
    """Run all studies (or one) and write results/live_traffic.json and the tables of docs/live-traffic.md."""
    stored = json.loads((HERE / "data" / "instances_4_7_9.json").read_text())
    INSTANCES.update({int(number): means for number, means in stored["instances"].items()})
    studies: dict[str, Callable[[Progress], object]] = {
        "late_and_lost": lambda bar: late_and_lost(runs, bar),
        "conversions": lambda bar: conversions(runs, bar),
        "changing_arms": lambda bar: changing_arms(runs // 10, bar),
    }
    found = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    with Progress() as bar:
        for name, study in studies.items():
            if only_page or (only is not None and name != only):
                continue
            began, began_cpu = time.monotonic(), time.process_time()
            found[name] = study(bar)
            spent = {"seconds": time.monotonic() - began, "cpu_seconds": time.process_time() - began_cpu}
            found.setdefault("cost", {})[name] = {what: round(value) for what, value in spent.items()}
    found["command"] = "make bench-live"
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")
    write_page(found)
    for table in tables(found).values():
        print(table, end="\n\n")


if __name__ == "__main__":
    typer.run(main)
