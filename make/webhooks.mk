.PHONY: bench-webhooks
bench-webhooks: $(EVERYTHING) wrk ## Measure what webhooks cost those who ask.
	$(BIN)/python -m benchmarks.webhooks
