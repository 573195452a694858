.PHONY: bench bench-full bench-drivers bench-growth wrk

wrk:
	@scripts/need wrk wrk

bench: $(EVERYTHING) wrk ## Measure the hot path against its floors, in about five minutes.
	$(BIN)/python -m benchmarks.hot_path

bench-full: $(EVERYTHING) wrk ## Measure the whole matrix: databases, workers, experiments, connections. About half an hour.
	$(BIN)/python -m benchmarks.hot_path --full --seconds 3 --repetitions 3

bench-drivers: $(EVERYTHING) ## Measure the PostgreSQL drivers on the write of a group.
	$(BIN)/python -m benchmarks.drivers

bench-growth: $(EVERYTHING) wrk ## Measure asks beside millions of stored assignments, and a worker's memory over ten minutes.
	$(BIN)/python -m benchmarks.growth rows
	$(BIN)/python -m benchmarks.growth memory
