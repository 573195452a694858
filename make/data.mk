.PHONY: bench-data
bench-data: $(EVERYTHING) wrk ## Measure exports beside asks and imports beside the batch route, a million rows each.
	$(BIN)/python -m benchmarks.export_import
