"""Pictures of an experiment: SVG written by hand, because nothing else draws three in a millisecond (docs/decisions/0008)."""

from service.web.charts.certainty_chart import draw_certainty
from service.web.charts.means_chart import draw_means
from service.web.charts.style import ChartStyle, style_for
from service.web.charts.traffic_chart import draw_traffic

__all__ = ["ChartStyle", "draw_certainty", "draw_means", "draw_traffic", "style_for"]
