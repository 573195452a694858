.PHONY: torture soak

torture: $(EVERYTHING) ## Break everything under live services and count what is lost: docs/reliability.md. About half an hour.
	nice -n 5 $(BIN)/python -m benchmarks.torture

soak: $(EVERYTHING) ## Half an hour of mixed load: memory, open files and answers at its end are like those at its beginning.
	nice -n 5 $(BIN)/python -m benchmarks.torture --only "long soak"
