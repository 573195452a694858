.PHONY: bench-storage bench-pruning bench-copies

bench-storage: $(EVERYTHING) ## Measure what a draw with its reward takes on the disk, on both databases; writes benchmarks/results/storage.json.
	$(BIN)/python -m benchmarks.storage

bench-pruning: $(EVERYTHING) wrk ## Prune a million assignments beside asks, on both databases; writes benchmarks/results/pruning.json. About an hour.
	$(BIN)/python -m benchmarks.pruning

bench-copies: $(EVERYTHING) wrk ## Dump, load, replay and back up a million draws beside asks; writes benchmarks/results/copies.json. About half an hour.
	$(BIN)/python -m benchmarks.copies
