"""The words of the dashboard's log, by Node and without a browser: every kind of event has its place and its sentence."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from service.domain import AUDITED, TRAITS
from service.domain.findings import EVENT_KINDS
from service.domain.limits import KEY_PATTERN
from service.web.dashboard import pages
from service.web.dashboard.vocabulary import VOCABULARY

_STATIC = Path(pages.__file__).parent / "static"
_FINDING = {"finding": "", "better": "green", "worse": "grey", "evidence": 5.0, "level": 0.01}
_DETAILS: dict[str, dict[str, Any]] = {
    "lifecycle": {"move": "pause"},
    "patch": {"before": {"name": "A"}, "after": {"name": "B"}},
    "expiry_run": {"expired": 2},
    "pruned": {"draws": 2},
    "forgotten": {"assignments": 2},
    "renamed": {"before": {"key": "a"}, "after": {"key": "b"}},
    "drift_noticed": {"drifting": ["green"]},
    **dict.fromkeys(EVENT_KINDS.values(), _FINDING),
}
_SCRIPT = """
import { BY_PEOPLE, FINDINGS, doer, sentence } from "./audit_words.js";
import { KEY_PATTERN } from "./vocabulary.js";
const events = JSON.parse(process.argv[2]);
const told = Object.fromEntries(events.map((event) => [event.kind, [sentence(event, (key) => `<${key}>`), doer(event)]]));
console.log(JSON.stringify({ people: BY_PEOPLE, findings: FINDINGS, told, key: KEY_PATTERN }));
"""


def _event(kind: str) -> dict[str, Any]:
    details = _DETAILS.get(kind, {})
    return {"kind": kind, "at": "2026-01-01T00:00:00Z", "arm": "green", "draw": 7, "actor": None, "details": details}


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the scripts say of one event of each audited kind, and of one that they know nothing of."""
    folder = tmp_path_factory.mktemp("scripts")
    for path in _STATIC.glob("*.js"):
        shutil.copy(path, folder)
    (folder / "vocabulary.js").write_text(VOCABULARY)
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "said.js").write_text(_SCRIPT)
    events = json.dumps([_event(kind) for kind in (*AUDITED, "price_noted")])
    ran = subprocess.run(
        [shutil.which("node") or "node", "said.js", events], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 0, ran.stderr
    said: dict[str, Any] = json.loads(ran.stdout)
    return said


@pytest.mark.process
def test_every_audited_kind_stands_in_one_tab(words: dict[str, Any]) -> None:
    """What people and operators did, or what was found; expiries alone only with everything."""
    assert not set(words["people"]) & set(words["findings"])
    assert set(AUDITED) - set(words["people"]) - set(words["findings"]) == {"expiry_run"}
    assert set(EVENT_KINDS.values()) < set(words["findings"])


@pytest.mark.process
def test_findings_name_their_arms_and_are_the_service_s(words: dict[str, Any]) -> None:
    """Each kind by a sentence of its own."""
    told = {kind: words["told"][kind] for kind in EVENT_KINDS.values()}
    assert all("<green>" in sentence and doer == "by the service" for sentence, doer in told.values())
    assert [kind for kind, (sentence, _) in told.items() if "<grey>" not in sentence] == ["decided"]
    assert len({sentence for sentence, _ in told.values()}) == len(told)


@pytest.mark.process
def test_who_did_it_follows_from_the_table(words: dict[str, Any]) -> None:
    """A kind without words of its own is told by its name and its arm."""
    by = {"people": "by request", "operator": "by an operator", "watch": "by the service", "sweep": "by the service"}
    assert {kind: doer for kind, (_, doer) in words["told"].items() if kind in AUDITED} == {
        kind: by[author] for kind in AUDITED if (author := TRAITS[kind].author)
    }
    assert words["told"]["price_noted"] == ["Price noted: <green>", "by request"]


def test_there_are_no_words_for_what_no_log_shows() -> None:
    """Each case of the sentences is an audited kind's; the shape of a key is not repeated."""
    cases = re.findall(r'^    case "(\w+)":', (_STATIC / "audit_words.js").read_text(), re.MULTILINE)
    assert len(cases) == len(set(cases))
    assert set(cases) <= set(AUDITED)
    assert KEY_PATTERN in VOCABULARY
    assert [path.name for path in _STATIC.glob("*.js") if KEY_PATTERN in path.read_text()] == []
