"""The recommendation as JSON, computed and written once for all who look."""

from __future__ import annotations

from service.application.context import Context
from service.application.live.version_cache import Cached, Subject, cached_bytes
from service.application.reads import recommendation as recommendations
from service.domain import ExperimentVersion
from service.web.api import views
from service.web.live import heavy_reads


async def recommendation(context: Context, key: str, version: ExperimentVersion) -> Cached[bytes]:
    """The recommendation as JSON, of this version or a newer one, computed and written once for all who look."""

    async def make() -> Cached[bytes]:
        found = await recommendations.current_of_few_arms(context, key)
        if found is None:
            return cached_bytes(*await context.lanes.present.run(heavy_reads.render_recommendation, key, version))
        context.shown.note(key, found.version, found.unkept)
        return cached_bytes(found.progress.version, views.encode(views.recommendation_view(found)))

    return await context.cache.at_least((Subject.RECOMMENDATION_JSON, version.experiment), version.number, make)
