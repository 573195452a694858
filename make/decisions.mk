.PHONY: bench-decisions
bench-decisions: $(EVERYTHING) ## Measure what a decision costs with 10 to 10,000 arms, into benchmarks/results/decision_cost.json.
	$(BIN)/python -m benchmarks.decision_cost
