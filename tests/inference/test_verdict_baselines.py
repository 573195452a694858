"""Draws until the verdict under the baselines: what is measured, its intervals, and that the page has what was measured."""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchmarks.inference_lockstep import DEFAULT, UNIFORM
from benchmarks.inference_verdict_baselines import (
    CASES,
    OWN_RESULTS,
    RUNS,
    SEED,
    players_for,
    ratios,
    together,
    waits,
    with_interval,
)
from benchmarks.inference_verdict_tables import verdict_baselines, verdict_means
from tests.docs.texts import text_of


def test_a_run_waits_until_the_service_shows_its_leader_to_be_the_best() -> None:
    """Most of few runs of the easiest case have their verdict, none a wrong one; nobody waits longer than is asked for."""
    easiest = next(case for case in CASES if case.name == "Beta, ten arms .3 to .6, deviation .16")
    draws, wrong = waits(easiest, DEFAULT, runs=6)
    assert wrong == 0
    assert np.isfinite(draws).mean() >= 0.7
    assert 500 < np.median(draws) < 10_000
    short, _ = waits(easiest, DEFAULT, runs=6, most_draws=100)
    assert np.isinf(short).all()


def test_a_ratio_of_medians_has_an_interval_that_knows_how_few_runs_there_are() -> None:
    """Half as many draws are a ratio of a half; more runs, a narrower interval; runs without a verdict count as long ones."""
    rng = np.random.default_rng(1)

    def rows(runs: int) -> list[dict[str, object]]:
        draws = {"default": 1000 * np.exp(rng.normal(0, 0.5, runs)), "other": 2000 * np.exp(rng.normal(0, 0.5, runs))}
        return [{"case": "one", "policy": name, "draws": [*map(int, each)]} for name, each in draws.items()]

    few, many = (with_interval(ratios(rows(runs))["other"]["one"]) for runs in (30, 3000))
    assert few[1] < 0.5 < few[2]
    assert many[0] == pytest.approx(0.5, rel=0.06)
    assert many[2] - many[1] < 0.25 * (few[2] - few[1])
    waiting = rows(30)
    waiting[1]["draws"] = [2000] * 21 + [None] * 9
    assert np.isfinite(with_interval(ratios(waiting)["other"]["one"])).all()


def test_ratios_of_several_cases_are_joined_by_their_geometric_mean() -> None:
    """A half and two are one."""
    assert with_interval(together([np.full(11, 0.5), np.full(11, 2.0)])) == (1.0, 1.0, 1.0)


def test_every_planned_pair_was_played_and_the_page_has_it() -> None:
    """All cases under all their policies; the tables of both pages are made again here."""
    rows = json.loads(OWN_RESULTS.read_text())
    planned = [(case.name, player.name) for case in CASES for player in players_for(case)]
    assert [(row["case"], row["policy"]) for row in rows] == planned
    assert {(row["runs"], len(row["draws"]), row["seed"]) for row in rows} == {(RUNS, RUNS, SEED)}
    assert f"<!-- verdict_baselines -->\n{verdict_baselines()}\n<!-- /verdict_baselines -->" in text_of("docs/inference.md")
    assert f"<!-- verdict_means -->\n{verdict_means()}\n<!-- /verdict_means -->" in text_of("docs/guarded-weights.md")


def test_policies_that_differ_draw_other_random_numbers() -> None:
    """A pair of case and policy has its own."""
    first, second = (waits(CASES[0], player, runs=5, most_draws=1500)[0] for player in (DEFAULT, UNIFORM))
    assert not np.array_equal(first, second)
