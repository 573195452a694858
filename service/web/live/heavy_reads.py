"""Reads that take long, each from the database to the bytes that are sent: what a lane's process performs.

Nothing of FastAPI is imported here, because every such process would hold it in memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.application.live import cached_reads
from service.application.reads import course
from service.web.api import views
from service.web.charts import draw_certainty, draw_means, draw_traffic, style_for

if TYPE_CHECKING:
    from typing import Literal, TypeAlias

    from service.application.live.reader import Reader
    from service.domain import ExperimentVersion
    from service.web.charts.style import SizeName, ThemeName

    ChartName: TypeAlias = Literal["means", "traffic", "certainty"]


async def render_recommendation(reader: Reader, key: str, version: ExperimentVersion) -> tuple[int, bytes]:
    """The recommendation of this version or a newer one as JSON, and which version it is."""
    found = await cached_reads.recommendation(reader, key, version)
    return found.progress.version, views.encode(views.recommendation_view(found))


async def render_history(reader: Reader, key: str, points: int) -> tuple[int, bytes]:
    """The course as JSON, and the version that it ends with."""
    found = await course.course(reader, key, points)
    return found.points[-1].snapshot.sequence, views.encode_course(found)


async def draw_chart(
    reader: Reader, key: str, version: ExperimentVersion, chart: ChartName, looks: tuple[ThemeName, SizeName, int]
) -> tuple[int, bytes]:
    """A picture of this version or a newer one, and which version it is."""
    style = style_for(*looks)
    recommendation = await cached_reads.recommendation(reader, key, version)
    if chart == "means":
        return recommendation.progress.version, draw_means(style, recommendation)
    draw = draw_traffic if chart == "traffic" else draw_certainty
    return recommendation.progress.version, draw(style, recommendation, await cached_reads.course(reader, key, version))
