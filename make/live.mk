.PHONY: bench-live

bench-live: $(EVERYTHING) ## Study live traffic by simulation: benchmarks/results/live_traffic.json, docs/live-traffic.md.
	nice -n 10 $(BIN)/python benchmarks/live_traffic.py
