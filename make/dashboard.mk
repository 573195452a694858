# The dashboard: see it, photograph it, measure it.
.PHONY: demo screenshots bench-viewers bench-charts

demo: $(RUNTIME) ## Start the service with three experiments and simulated visitors (BESTARM_PORT=8000).
	$(BIN)/python -m scripts.demo

screenshots: $(EVERYTHING) browser ## Photograph the dashboard into docs/screenshots/.
	$(BIN)/python -m scripts.screenshots

bench-viewers: $(EVERYTHING) ## 500 open streams for two minutes, and what a 304 costs; writes benchmarks/results/viewers.json.
	$(BIN)/python -m benchmarks.viewers

bench-charts: $(EVERYTHING) ## What drawing a chart costs; writes benchmarks/results/charts.json.
	$(BIN)/python -m benchmarks.charts
