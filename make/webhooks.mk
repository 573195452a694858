.PHONY: bench-webhooks
bench-webhooks: $(EVERYTHING) wrk ## Measure what idle webhooks cost those who ask.
	$(BIN)/python -m benchmarks.webhooks
