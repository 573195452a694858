"""Experiments, one or a page of them, from the database to the bytes that are sent: with many arms, a lane's process does it.

Nothing of FastAPI is imported here, because every such process would hold it in memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.application.reads import experiment_descriptions
from service.web.api import views
from service.web.api.content_etags import experiment_etag
from service.web.api.listings import Listing

if TYPE_CHECKING:
    from service.application.commands.experiments import Described
    from service.application.live.reader import Reader
    from service.domain import ArmRecord


def encode_experiment(described: Described) -> bytes:
    """An experiment with its arms, as it was read or changed, as JSON."""
    return views.encode(views.experiment_view(described))


def encode_arm(record: ArmRecord) -> bytes:
    """An arm as JSON."""
    return views.encode(views.arm_view(record.arm))


async def render_experiment(reader: Reader, key: str) -> tuple[str, bytes]:
    """An experiment with its arms as JSON, and its ETag."""
    described = await experiment_descriptions.describe(reader, key)
    written = encode_experiment(described)
    return experiment_etag(written), written


async def render_experiments(reader: Reader, wanted: experiment_descriptions.PageOfList) -> bytes:
    """A page of the list of experiments as JSON."""
    return encode_experiments(await experiment_descriptions.list_page(reader, wanted))


def encode_experiments(page: experiment_descriptions.ListedPage) -> bytes:
    """A page of the list of experiments, as it was read, as JSON."""
    listing: Listing[experiment_descriptions.Listed] = Listing(
        "experiments", views.experiment_summary, lambda one: one[0].experiment.id
    )
    return listing.page(page.found, page.shown, page.go_on_behind)
