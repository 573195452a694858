.PHONY: bench-client
bench-client: $(EVERYTHING) ## Measure what the Python client costs beside bare httpx, into benchmarks/results/client_overhead.json.
	$(BIN)/python -m benchmarks.client_overhead
