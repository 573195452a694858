# The dashboard: see it, photograph it, measure it.
.PHONY: demo screenshots bench-viewers bench-charts

demo: $(RUNTIME) ## Start the service with three experiments and simulated visitors (BESTARM_PORT=8000).
	$(BIN)/python scripts/demo.py

screenshots: $(EVERYTHING) browser ## Photograph the dashboard into docs/screenshots/.
	$(BIN)/python scripts/screenshots.py

bench-viewers: $(EVERYTHING) ## 500 open streams for two minutes, and what a 304 costs; writes benchmarks/results/viewers.json.
	$(BIN)/python benchmarks/viewers.py

bench-charts: $(EVERYTHING) ## What drawing a chart costs; writes benchmarks/results/charts.json.
	$(BIN)/python benchmarks/charts.py
