"""The standing of worst rates."""

from __future__ import annotations

from studies.summaries import worst_rates
from tests.studies.made_up_results import made_up


def test_worst_rates_and_the_claim() -> None:
    """The worst instance decides; intervals apart are needed to be above."""
    found = [
        made_up("9", "simple_tracking", 1200, 100),
        made_up("10", "simple_tracking", 3400, 500),
        made_up("9", "uniform", 1200, 3000),
        made_up("10", "uniform", 3400, 3400),
    ]
    summary = worst_rates.summarise(found)
    assert summary["worst"]["H1"]["simple_tracking"]["instance"] == "10"
    assert summary["claim"]["H1"] == [{"policy": "simple_tracking", "baseline": "uniform", "verdict": "above", "instances": 2}]
