# The dashboard: see it, photograph it, measure it.
.PHONY: demo screenshots bench-viewers bench-charts
DEMO_PORT ?= 8100

demo: $(RUNTIME) ## Start a service of its own with three experiments and simulated visitors, on 127.0.0.1:8100 (DEMO_PORT=8100).
	$(BIN)/python -m scripts.demo --port $(DEMO_PORT)

screenshots: $(EVERYTHING) browser ## Photograph the dashboard into docs/screenshots/.
	$(BIN)/python -m scripts.screenshots

bench-viewers: $(EVERYTHING) ## 500 open streams for two minutes, and what a 304 costs; writes benchmarks/results/viewers.json.
	$(BIN)/python -m benchmarks.viewers

bench-charts: $(EVERYTHING) ## What drawing a chart costs; writes benchmarks/results/charts.json.
	$(BIN)/python -m benchmarks.charts
