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


def experiment_etag(described: Described) -> str:
    """The ETag of an experiment, of its settings and arms: traffic, which moves the version, does not move it."""
    shown = views.experiment_view(described)
    del shown["version"]
    return etag_of_content(views.encode(shown))


def arm_etag(arm: Arm) -> str:
    """The ETag of one arm: what changes another arm does not move it."""
    return etag_of_content(views.encode(views.arm_view(arm)))
