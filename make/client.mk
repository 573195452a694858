.PHONY: bench-client bench-fallback
bench-client: $(EVERYTHING) ## Measure what the Python client costs beside bare httpx, into benchmarks/results/client_overhead.json.
	$(BIN)/python -m benchmarks.client_overhead

bench-fallback: $(EVERYTHING) ## Measure how long asks with a fallback take in an outage, into benchmarks/results/client_fallback.json.
	$(BIN)/python -m benchmarks.client_fallback
