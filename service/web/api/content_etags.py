"""ETags made of what is shown itself. Nothing of FastAPI is imported here: lanes' processes make them, too."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from service.web.api import views

if TYPE_CHECKING:
    from service.application.commands.experiments import Described
    from service.domain import Arm


def etag_of_content(content: bytes) -> str:
    """An ETag that is equal for equal content."""
    return f'"{hashlib.blake2b(content, digest_size=12).hexdigest()}"'


def experiment_etag(written: bytes) -> str:
    """The ETag of an experiment in JSON, of its settings and arms. Traffic moves the version at its end, and not the ETag."""
    return etag_of_content(written[: written.rindex(b',"version":')])


def etag_of_experiment(described: Described) -> str:
    """The same, of an experiment that is not written yet."""
    return experiment_etag(views.encode(views.experiment_view(described)))


def arm_etag(arm: Arm) -> str:
    """The ETag of one arm: what changes another arm does not move it."""
    return etag_of_content(views.encode(views.arm_view(arm)))


def meets(if_match: str, *etags: str) -> bool:
    """Does the caller know the present state? (RFC 9110: a list, compared strongly, * is any that exists)."""
    given = [tag.strip() for tag in if_match.split(",")]
    return "*" in given or not set(etags).isdisjoint(given)
