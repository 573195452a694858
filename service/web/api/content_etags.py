"""ETags made of what is shown itself. Nothing of FastAPI is imported here: lanes' processes make them, too."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from service.web.api import views

if TYPE_CHECKING:
    from service.application.commands.experiments import Described
    from service.domain import Arm


def etag_of_content(content: bytes) -> str:
    """Equal for equal content."""
    return f'"{hashlib.blake2b(content, digest_size=12).hexdigest()}"'


def experiment_etag(written: bytes) -> str:
    """Of the settings and the arms of an experiment in JSON: traffic, which moves the version at its end, does not move it."""
    return etag_of_content(written[: written.rindex(b',"version":')])


def etag_of_experiment(described: Described) -> str:
    """The same, of an experiment that is not written yet."""
    return experiment_etag(views.encode(views.experiment_view(described)))


def arm_etag(arm: Arm) -> str:
    """Of the arm alone."""
    return etag_of_content(views.encode(views.arm_view(arm)))


def meets(if_match: str, *etags: str) -> bool:
    """Does the caller know the present state? (RFC 9110: a list, compared strongly, * is any that exists)."""
    given = [tag.strip() for tag in if_match.split(",")]
    return "*" in given or not set(etags).isdisjoint(given)
