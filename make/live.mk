.PHONY: bench-live live-long

bench-live: $(EVERYTHING) ## Study live traffic by simulation: benchmarks/results/live_traffic.json, docs/live-traffic.md.
	nice -n 10 $(BIN)/python -m benchmarks.live_traffic

live-long: $(EVERYTHING) ## The long forms of the live tests: 100,000 draws replayed, 100,000 expiries, 500 random interleavings.
	$(BIN)/python -m benchmarks.long_history 100000
	BESTARM_LIVE_SILENT=100000 $(BIN)/python -m pytest tests/live/test_mass_expiry.py -q -s
	BESTARM_LIVE_EXAMPLES=500 BESTARM_LIVE_SHRINK=1 $(BIN)/python -m pytest tests/live/test_model.py -q
