.PHONY: torture soak fuzz fault-tools

# Debian has these; tests and the campaign of faults run them.
fault-tools:
	@scripts/need faketime faketime
	@scripts/need pgbouncer pgbouncer
	@scripts/need nginx nginx-light
	@scripts/need haproxy haproxy

test: fault-tools

torture: $(EVERYTHING) fault-tools ## Break everything under live services and count what is lost: docs/reliability.md. About 50 minutes.
	$(BIN)/python -m benchmarks.torture

soak: $(EVERYTHING) ## Half an hour of mixed load: memory, open files and answers at its end are like those at its beginning.
	nice -n 5 $(BIN)/python -m benchmarks.torture --only "long soak"

# What breaks is left in build/fuzzing/ as crash-…; inputs that reach something new are kept beside it for the next time.
FUZZ_SECONDS ?= 600
fuzz: $(EVERYTHING) ## Fuzz the recogniser of plain requests by coverage for ten minutes (FUZZ_SECONDS=600), against the general way in.
	mkdir -p build/fuzzing/found
	nice $(BIN)/python -m testing.fuzzing.recogniser_target -max_total_time=$(FUZZ_SECONDS) -artifact_prefix=build/fuzzing/ \
		build/fuzzing/found testing/fuzzing/corpus
