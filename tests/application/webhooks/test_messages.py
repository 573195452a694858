"""The forms of a message: the standard's, and what Slack and Teams show of it."""

from __future__ import annotations

import json
from typing import Any

from service.application.reads.sightings import Sighting
from service.application.webhooks.messages import body_in, message_of, message_of_test
from service.domain import Experiment, ExperimentVersion, PolicySpec, RewardSpec
from service.domain.announcements import Announcement
from service.domain.webhooks import Template

_HOSTILE = "<!channel> & *bold* [link](https://evil.example) </script>"
_SAID = Announcement("experiment.separated", 7, 1_700_000_000_000_000, f"{_HOSTILE} is better.", {"arm": "a"})


def _experiment() -> Experiment:
    return Experiment(
        1, "one", _HOSTILE, "", PolicySpec(), RewardSpec(), None, False, 0.95, None, "running", None, 0
    )  # fmt: skip


def _seen(summary: str = "Not yet.") -> Sighting:
    return Sighting(ExperimentVersion(1, 9), [], 0, [], "a", None, None, 3, 2, summary)


def _body(template: Template, message: Any = None) -> Any:  # noqa: ANN401 - any JSON
    return json.loads(body_in(template, message or message_of(_SAID, _experiment(), _seen())))


def test_the_standard_form() -> None:
    """Type, time and data; what was recommended when the message was made, or null."""
    body = _body("standard")
    assert (body["type"], body["timestamp"]) == ("experiment.separated", "2023-11-14T22:13:20.000000Z")
    recommended = body["data"].pop("recommendation")
    assert body["data"] == {"experiment": "one", "name": _HOSTILE, "version": 7, "sentence": f"{_HOSTILE} is better.", "arm": "a"}
    assert recommended == {
        "arm": "a",
        "runner_up": None,
        "gap": None,
        "draws": 3,
        "observations": 2,
        "summary": "Not yet.",
        "version": 9,
    }
    assert message_of(_SAID, _experiment(), None)["data"] | {"recommendation": None} == body["data"] | {"recommendation": None}  # type: ignore[operator]


def test_slack_gets_a_text_in_which_names_are_only_names() -> None:
    """No mention, no link, no bold: the three characters that Slack reads are escaped, and its marks are off."""
    body = _body("slack")
    assert "<" not in body["text"]
    assert ">" not in body["text"]
    assert body["text"].startswith("&lt;!channel&gt; &amp; *bold*")
    assert body["text"].endswith("is better. Not yet.")
    assert (body["mrkdwn"], body["unfurl_links"]) == (False, False)


def test_teams_gets_a_card_whose_text_is_plain() -> None:
    """Two runs of text, which read no Markdown, in the message that a workflow of Teams takes."""
    body = _body("teams")
    (attached,) = body["attachments"]
    assert (body["type"], attached["contentType"]) == ("message", "application/vnd.microsoft.card.adaptive")
    card = attached["content"]
    assert (card["type"], card["version"]) == ("AdaptiveCard", "1.2")
    assert [block["type"] for block in card["body"]] == ["RichTextBlock"] * 2
    runs = [run for block in card["body"] for run in block["inlines"]]
    assert [(run["type"], run["text"]) for run in runs] == [
        ("TextRun", _HOSTILE),
        ("TextRun", f"{_HOSTILE} is better. Not yet."),
    ]


def test_a_test_has_every_form() -> None:
    """So that it shows whether an endpoint takes what it will get."""
    message = message_of_test("wh_0", 0)
    assert _body("standard", message)["type"] == "webhook.test"
    assert _body("slack", message)["text"] == "bestarm: This is a test: messages of bestarm arrive here."
    assert len(_body("teams", message)["attachments"]) == 1


def test_a_message_is_small() -> None:
    """However many arms a summary names."""
    assert len(json.dumps(message_of(_SAID, _experiment(), _seen("x" * 1_000_000)))) < 20_000
