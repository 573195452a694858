.PHONY: torture soak fault-tools

# Debian has these; tests and the campaign of faults run them.
fault-tools:
	@scripts/need faketime faketime
	@scripts/need pgbouncer pgbouncer

test: fault-tools

torture: $(EVERYTHING) fault-tools ## Break everything under live services and count what is lost: docs/reliability.md. About 40 minutes.
	$(BIN)/python -m benchmarks.torture

soak: $(EVERYTHING) ## Half an hour of mixed load: memory, open files and answers at its end are like those at its beginning.
	nice -n 5 $(BIN)/python -m benchmarks.torture --only "long soak"
