"""Messages: what a receiver is told of an event, in the standard form, and the same as Slack and Teams take it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from service.domain.limits import LONGEST_MESSAGE_SUMMARY
from service.engine.clock import time_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from service.application.reads.sightings import Sighting
    from service.domain import Experiment, Json
    from service.domain.announcements import Announcement
    from service.domain.webhooks import Template


def message_of(announcement: Announcement, experiment: Experiment, seen: Sighting | None) -> dict[str, Json]:
    """An event in the standard form; with what is recommended as of when the message was made, if somebody has looked."""
    data: dict[str, Json] = {
        "experiment": experiment.key,
        "name": experiment.name,
        "version": announcement.sequence,
        "sentence": announcement.sentence,
    }
    data |= announcement.facts
    data["recommendation"] = None if seen is None else _recommended(seen)
    return {"type": announcement.type, "timestamp": time_text(announcement.at), "data": data}


def message_of_test(webhook_id: str, at: int) -> dict[str, Json]:
    """What a test sends."""
    data: dict[str, Json] = {"webhook": webhook_id, "sentence": "This is a test: messages of bestarm arrive here."}
    return {"type": "webhook.test", "timestamp": time_text(at), "data": data}


def body_in(template: Template, message: Mapping[str, Json]) -> bytes:
    """A message as the endpoint takes it."""
    return json.dumps(_FORMS[template](message), ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def _recommended(seen: Sighting) -> Json:
    return {
        "arm": seen.arm,
        "runner_up": seen.runner_up,
        "gap": seen.gap,
        "draws": seen.draws,
        "observations": seen.observations,
        "summary": seen.summary[:LONGEST_MESSAGE_SUMMARY],
        "version": seen.version.number,
    }


def _text_of(message: Mapping[str, Any]) -> tuple[str, str]:
    """What it is about, and what is said of it."""
    data = message["data"]
    summary = (data.get("recommendation") or {}).get("summary")
    told = [data["sentence"], *([summary] if summary and message["type"] != "experiment.paused" else [])]
    return data.get("name") or "bestarm", " ".join(told)


def _slack(message: Mapping[str, Json]) -> Json:
    """An incoming webhook's text. Names are as people gave them: nothing in them may become a link, a mention or bold."""
    title, text = _text_of(message)
    escaped = f"{title}: {text}".replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return {"text": escaped, "mrkdwn": False, "unfurl_links": False}


def _teams(message: Mapping[str, Json]) -> Json:
    """A card for a workflow of Teams. Its runs of text are plain, where a block of text would read Markdown."""
    title, text = _text_of(message)
    runs: list[dict[str, Json]] = [{"type": "TextRun", "text": title, "weight": "Bolder"}, {"type": "TextRun", "text": text}]
    card: dict[str, Json] = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.2",
        "body": [{"type": "RichTextBlock", "inlines": [run]} for run in runs],
    }
    attached: Json = {"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": card}
    return {"type": "message", "attachments": [attached]}


_FORMS: dict[Template, Callable[[Mapping[str, Json]], Json]] = {"standard": dict, "slack": _slack, "teams": _teams}
