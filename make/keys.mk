.PHONY: bench-keys
bench-keys: $(EVERYTHING) wrk ## Measure what keys cost, with few and many, and beside wrong ones; writes benchmarks/results/keys.json.
	$(BIN)/python -m benchmarks.keys
