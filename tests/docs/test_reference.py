"""Nothing is left out: every setting, route, error code, policy, reason and command is documented, and nothing else."""

from __future__ import annotations

import re
from typing import get_args

import pytest
from pydantic import BaseModel

from service.cli import app
from service.domain import AUDITED, PolicyKind, RewardKind
from service.main import create_app
from service.settings import Settings
from service.web.api import answer_schemas, recommendation_schemas, request_schemas
from service.web.problems import STATUS
from studies.__main__ import STUDIES
from tests.docs.texts import ROOT, all_text, text_of

_ROW = re.compile(r"^\| `(BESTARM_\w+)` \| `([^`]*)` \|", re.MULTILINE)
_PARAMETERS = sorted(set(request_schemas.PolicyIn.model_fields) - {"kind"})


def _model(name: str) -> type[BaseModel]:
    homes = (answer_schemas, recommendation_schemas, request_schemas)
    return next(getattr(home, name) for home in homes if hasattr(home, name))  # type: ignore[no-any-return]


def _routes() -> set[tuple[str, str]]:
    paths = create_app().openapi()["paths"]
    return {(method.upper(), path) for path, operations in paths.items() for method in operations}


def _codes() -> set[str]:
    web = [path.read_text() for path in (ROOT / "service/web").rglob("*.py")]
    at_the_edge = {code for text in web for code in re.findall(r'\b[45]\d\d, "([a-z_]+)"', text)}
    return {code for _, code in STATUS.values()} | at_the_edge


def _commands() -> list[str]:
    named = [one.name or getattr(one.callback, "__name__", "") for one in app.registered_commands]
    return [name.replace("_", "-") for name in named] + [group.name for group in app.registered_groups if group.name]


def test_every_setting_is_documented_with_its_default() -> None:
    """docs/settings.md has a row for each variable, with the default that the code has, and none that is not there."""
    rows = dict(_ROW.findall(text_of("docs/settings.md")))
    assert rows == {f"BESTARM_{name.upper()}": str(field.default) for name, field in Settings.model_fields.items()}


def test_every_variable_that_a_page_or_a_file_names_exists() -> None:
    """No page speaks of a setting that is gone."""
    known = {f"BESTARM_{name.upper()}" for name in Settings.model_fields}
    known |= {"BESTARM_URL", "BESTARM_KEY"}  # of callers: the examples, and `mcp`
    known |= set(re.findall(r"^(BESTARM_\w+)=", text_of(".env.example"), re.MULTILINE))  # of compose
    known |= {"BESTARM_SCRAPE_SECONDS", "BESTARM_COMPOSE_TIMES"}  # of tests whose figures a page has
    named = set(re.findall(r"BESTARM_[A-Z_]+\b", all_text() + text_of("Dockerfile") + text_of("docker-compose.yml")))
    assert named - {"BESTARM_"} <= known


def test_every_migration_is_told_to_those_who_upgrade() -> None:
    """By its number in "Upgrading" of the page of operations, from the first that an upgrade meets."""
    told = text_of("docs/operations.md").partition("\n## Upgrading\n")[2].partition("\n## ")[0]
    numbers = {path.name[:4] for path in (ROOT / "migrations/versions").glob("0*.py")}
    assert {number for number in numbers if number > "0005"} <= set(re.findall(r"\b\d{4}\b", told))


def test_every_route_is_documented() -> None:
    """docs/api.md lists the routes of the OpenAPI document."""
    listed = set(re.findall(r"^\| `([A-Z]+) (/\S*)` \|", text_of("docs/api.md"), re.MULTILINE))
    missing = {route for route in _routes() if route not in listed and not _documented_elsewhere(route)}
    assert not missing
    assert listed <= _routes() | {("GET", "/docs")}, "a route that is gone"


def _documented_elsewhere(route: tuple[str, str]) -> bool:
    """Pages for browsers have pages of their own."""
    return f"`{route[0]} {route[1]}`" in all_text() or f"`{route[1]}`" in all_text()


def test_every_error_code_is_documented_with_its_status() -> None:
    """docs/api.md has a row for each code."""
    rows = {
        (int(status), code) for status, code in re.findall(r"^\| (\d{3}) \| `(\w+)` \|", text_of("docs/api.md"), re.MULTILINE)
    }
    assert _codes() <= {code for _, code in rows}
    assert set(STATUS.values()) <= rows


@pytest.mark.parametrize("kind", get_args(PolicyKind))
def test_every_policy_is_documented(kind: str) -> None:
    """In the README and on its own page."""
    assert f"`{kind}`" in text_of("README.md")
    assert f"`{kind}`" in text_of("docs/policies.md")


@pytest.mark.parametrize("parameter", _PARAMETERS)
def test_every_parameter_of_a_policy_is_documented(parameter: str) -> None:
    """By the name that the API gives it."""
    assert f"`{parameter}`" in text_of("docs/policies.md")


@pytest.mark.parametrize("command", _commands())
def test_every_command_is_documented(command: str) -> None:
    """Somewhere, as one would type it."""
    assert f"bestarm {command}" in all_text()


def test_every_command_that_a_page_names_exists() -> None:
    """`bestarm something` works, or is the name of the client or of a database."""
    typed = set(re.findall(r"`bestarm ([a-z][a-z-]+)", all_text()))
    assert typed <= set(_commands())


def test_every_study_that_a_page_names_exists() -> None:
    """`python -m studies something` works in a checkout."""
    typed = set(re.findall(r"`python -m studies ([a-z][a-z-]+)", all_text()))
    assert typed
    assert typed <= {*STUDIES, "all", "page"}


def test_every_make_target_that_a_page_names_exists() -> None:
    """`make something` works."""
    makefiles = "\n".join(path.read_text() for path in [ROOT / "Makefile", *sorted(ROOT.glob("make/*.mk"))])
    targets = set(re.findall(r"^([a-z][a-z-]*):", makefiles, re.MULTILINE))
    typed = re.findall(r"`make ([a-z][a-z-]+)`|^(?: {4})?make ([a-z-]+)", all_text(), re.MULTILINE)
    assert {inline or alone for inline, alone in typed} <= targets


@pytest.mark.parametrize("model", ["ExperimentIn", "ArmIn", "RecommendationOut", "StandingOut", "AssignmentOut"])
def test_every_field_that_callers_meet_is_documented(model: str) -> None:
    """In the README's walk or in docs/api.md."""
    text = text_of("README.md") + text_of("docs/api.md")
    assert [name for name in _model(model).model_fields if f'"{name}"' not in text and f"`{name}`" not in text] == []


@pytest.mark.parametrize("kind", [*AUDITED, *get_args(RewardKind)])
def test_every_kind_of_event_and_reward_is_documented(kind: str) -> None:
    """In docs/api.md."""
    assert f"`{kind}`" in text_of("docs/api.md")


def test_every_metric_is_documented() -> None:
    """docs/operations.md has a row for each, and none that is gone."""
    made = {
        name + ("_total" if kind == "Counter" else "")
        for path in (ROOT / "service").rglob("*.py")
        for kind, name in re.findall(r'(Counter|Gauge|Histogram)\(\s*"(bestarm_\w+)"', path.read_text())
    }
    assert set(re.findall(r"^\| `(bestarm_\w+)` \|", text_of("docs/operations.md"), re.MULTILINE)) == made
