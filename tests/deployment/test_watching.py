"""Rules, dashboard and page against each other, against promtool, and against a real Prometheus that watches a real service."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from testing.asking_clients import AskingClients
from testing.databases import NewDatabase
from testing.json_client import JsonClient, arms
from testing.prometheus import CONFIGURATION, Prometheus
from testing.server import Server, free_port
from tests.docs.texts import ROOT, text_of

_RULES: list[dict[str, Any]] = yaml.safe_load((CONFIGURATION / "rules.yml").read_text())["groups"][0]["rules"]
_CASES: list[dict[str, Any]] = yaml.safe_load((CONFIGURATION / "rules_test.yml").read_text())["tests"]
_DASHBOARD: dict[str, Any] = json.loads((ROOT / "deploy/grafana/dashboards/bestarm.json").read_text())
_PANELS: list[dict[str, Any]] = _DASHBOARD["panels"]
_NAMES = [rule["alert"] for rule in _RULES]
_PAGES = "https://docs.example.com/bestarm"
"""What people put the address of their own pages in the place of; a link must be absolute."""
_SECONDS = float(os.environ.get("BESTARM_SCRAPE_SECONDS", "3"))
"""How long a service is asked while Prometheus watches; a minute is the long form."""


def _expressions() -> list[str]:
    """What the dashboard asks Prometheus, with its variables filled in."""
    asked = [target["expr"] for panel in _PANELS for target in panel.get("targets", [])]
    return [one.replace("$__rate_interval", "1m").replace("$instance", ".*") for one in asked]


def _metrics(text: str) -> set[str]:
    return {re.sub(r"_(bucket|count|sum)$", "", name) for name in re.findall(r"\bbestarm_\w+", text)}


@pytest.mark.process
def test_promtool_has_no_objection_and_every_rule_does_as_its_cases_say() -> None:
    """The configuration is valid, and each alert fires when it should, with the words that it should."""
    for command in (["check", "config", "prometheus.yml"], ["test", "rules", "rules_test.yml"]):
        done = subprocess.run(["promtool", *command], cwd=CONFIGURATION, capture_output=True, text=True, check=False)  # noqa: S607
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", _NAMES)
def test_an_alert_has_a_case_that_fires_and_one_that_does_not(name: str) -> None:
    """So a rule that always fires fails a case, and one that never does fails another."""
    cases = [case for one in _CASES for case in one["alert_rule_test"] if case["alertname"] == name]
    assert {bool(case.get("exp_alerts")) for case in cases} == {True, False}


@pytest.mark.parametrize("rule", _RULES, ids=_NAMES)
def test_an_alert_says_what_it_means_and_leads_to_its_paragraph(rule: dict[str, Any]) -> None:
    """Under its own name, with what to do."""
    name = rule["alert"]
    assert rule["labels"]["severity"] in {"warning", "critical"}
    assert rule["annotations"]["summary"].endswith(".")
    assert rule["annotations"]["runbook_url"] == f"{_PAGES}/watching.md#{name.lower()}"
    paragraph = text_of("docs/watching.md").partition(f"### {name}\n")[2].partition("\n### ")[0]
    assert "**Do:**" in paragraph


def test_the_page_says_where_the_links_lead() -> None:
    """And that somebody must say where they should."""
    assert f"`{_PAGES}/`" in text_of("docs/watching.md")


def test_the_page_speaks_of_no_alert_that_is_gone() -> None:
    """Its headings are the alerts, in their order."""
    assert re.findall(r"^### (Bestarm\w+)$", text_of("docs/watching.md"), re.MULTILINE) == _NAMES


def test_the_dashboard_can_be_shown() -> None:
    """Panels do not lie on each other, have numbers of their own, say what they show, and ask the data source that is chosen."""
    assert len({panel["id"] for panel in _PANELS}) == len(_PANELS)
    taken: set[tuple[int, int]] = set()
    for panel in _PANELS:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells
        if panel["type"] != "row":
            assert panel["description"].endswith(".")
            assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
            assert [target["refId"] for target in panel["targets"]] == list("ABC")[: len(panel["targets"])]


def test_grafana_finds_the_dashboard_and_prometheus() -> None:
    """The paths and names of the provisioning are those of the compose file."""
    services = yaml.safe_load(text_of("docker-compose.yml"))["services"]
    mounted = dict(volume.removesuffix(":ro").split(":") for volume in services["grafana"]["volumes"])
    (provider,) = yaml.safe_load(text_of("deploy/grafana/provisioning/dashboards/bestarm.yml"))["providers"]
    assert mounted["./deploy/grafana/dashboards"] == provider["options"]["path"]
    assert mounted["./deploy/grafana/provisioning"] == "/etc/grafana/provisioning"
    (source,) = yaml.safe_load(text_of("deploy/grafana/provisioning/datasources/prometheus.yml"))["datasources"]
    assert source["url"] == "http://prometheus:9090"
    target = f"service:{services['service']['environment']['BESTARM_METRICS_PORT']}"
    assert target in text_of("deploy/prometheus/prometheus.yml")


@pytest.fixture(scope="module")
def metrics_port() -> int:
    """Where the service shows its numbers."""
    return free_port()


@pytest.fixture(scope="module")
def watched(postgresql_databases: NewDatabase, metrics_port: int) -> Iterator[Server]:
    """A service of two workers, which nobody else uses."""
    with Server(postgresql_databases(), workers=2, BESTARM_METRICS_PORT=str(metrics_port)) as running:
        yield running


@pytest.fixture(scope="module")
def prometheus(watched: Server, metrics_port: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """It watches the service."""
    assert watched.process.poll() is None
    with Prometheus(tmp_path_factory.mktemp("prometheus"), f"127.0.0.1:{metrics_port}") as running:
        yield running


def _eventually(prometheus: Prometheus, expected: dict[str, float]) -> None:
    """Numbers are scraped once a second, and counted a moment after the answer."""
    deadline = time.monotonic() + 30
    while (found := {expression: prometheus.value(expression) for expression in expected}) != expected:
        assert time.monotonic() < deadline, found
        time.sleep(0.2)


def test_what_prometheus_counts_is_what_clients_counted(watched: Server, prometheus: Prometheus) -> None:
    """Over two workers: every ask, tell, look and refusal, no more and no less, while it scrapes all the time."""
    with JsonClient(watched.url) as wire:
        wire.create("scraped", arms=arms(3))
        with AskingClients(watched.url, "scraped", clients=6) as asking:
            time.sleep(_SECONDS)
        told = asking.answered[:50]
        for assignment in told:
            wire.tell("scraped", assignment, 1)
            refused = wire.send("POST", f"/v1/experiments/scraped/assignments/{assignment}/reward", {"reward": 0})
            assert refused.status == 409
    assert (asking.refused, asking.broken) == ([], [])
    asks = 'route="/v1/experiments/{key}/assignments",method="POST"'
    tells = 'route="/v1/experiments/{key}/assignments/{id}/reward"'
    _eventually(
        prometheus,
        {
            'up{job="bestarm"}': 1,
            "bestarm_ready": 1,
            f'sum(bestarm_request_seconds_count{{{asks},status="201"}})': len(asking.answered),
            f'sum(bestarm_request_seconds_bucket{{{asks},status="201",le="+Inf"}})': len(asking.answered),
            f'sum(bestarm_request_seconds_count{{{tells},status="200"}})': len(told),
            f'sum(bestarm_request_seconds_count{{{tells},status="409"}})': len(told),
            'sum(bestarm_events_total{kind="draw"})': len(asking.answered),
            'sum(bestarm_events_total{kind="reward"})': len(told),
            'bestarm_problems_total{code="reward_conflict"}': len(told),
            'sum(bestarm_key_requests_total{key="open"})': len(asking.answered) + 2 * len(told) + 1,
        },
    )
    counted = 'count_over_time(up{job="bestarm"}[1d])'
    _until(lambda: prometheus.value(counted) >= max(2.0, _SECONDS / 2))  # one a second, on a machine that may be busy
    scrapes = prometheus.value(counted)
    print(f"{scrapes:.0f} scrapes; asks that clients counted: {len(asking.answered)}, Prometheus the same")  # noqa: T201 - for docs/watching.md


def test_prometheus_takes_every_rule_and_every_question_of_the_dashboard(prometheus: Prometheus) -> None:
    """None of them is an error, and all that is well stays quiet."""
    _until(lambda: all(rule["health"] == "ok" for rule in _rules_of(prometheus)))
    assert [(rule["name"], rule["state"]) for rule in _rules_of(prometheus)] == [(name, "inactive") for name in _NAMES]
    for expression in _expressions():
        prometheus.get("query", query=expression)


def _rules_of(prometheus: Prometheus) -> list[dict[str, Any]]:
    rules: list[dict[str, Any]] = prometheus.get("rules")["groups"][0]["rules"]
    return rules


def _until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.2)


@pytest.mark.process
def test_rules_and_dashboard_are_made_of_numbers_that_the_service_has(tmp_path: Path) -> None:
    """By the names that it shows; and the page of operations lists every one."""
    with Server(f"sqlite:///{tmp_path}/bestarm.db") as server:
        _until(lambda: "bestarm_ready" in httpx.get(f"{server.url}/metrics").text)
        shown = {
            line.split()[2] for line in httpx.get(f"{server.url}/metrics").text.splitlines() if line.startswith("# TYPE bestarm_")
        }
    shown = {name for name in shown if not name.endswith("_created")}
    used = _metrics(" ".join([*_expressions(), *(rule["expr"] for rule in _RULES)]))
    assert used <= shown
    assert shown <= _metrics(text_of("docs/operations.md"))
