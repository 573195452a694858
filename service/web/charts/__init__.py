"""Pictures of an experiment: SVG written by hand, because nothing else draws three charts in a millisecond (docs/decisions)."""

from service.web.charts.certainty import draw_certainty
from service.web.charts.means import draw_means
from service.web.charts.style import Look, look_for
from service.web.charts.traffic import draw_traffic

__all__ = ["Look", "draw_certainty", "draw_means", "draw_traffic", "look_for"]
