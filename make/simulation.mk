# Offline simulation: the paper's experiments (studies/), the check that the kernels equal the production policies, the speed.
.PHONY: reproduce reproduction-page equality-study bench-sim bench-sim-before bench-sim-memory bench-plan guarded-confirmation

REPRODUCTION := docs/reproduction
SIM_JOBS ?= -1

reproduce: $(EVERYTHING) ## Run every study of the paper again (10,000 runs each; hours on one core) and write docs/reproduction.md.
	$(BIN)/python -m studies all --runs 10000 --seed 20260 --jobs $(SIM_JOBS) --out $(REPRODUCTION)
	$(BIN)/python -m studies page --from $(REPRODUCTION) --to docs/reproduction.md

reproduction-page: $(EVERYTHING) ## Write docs/reproduction.md from the committed result files.
	$(BIN)/python -m studies page --from $(REPRODUCTION) --to docs/reproduction.md

equality-study: $(EVERYTHING) ## Compare 1,000 runs of the compiled policies with service/policy, draw for draw.
	$(BIN)/python -m benchmarks.simulation_equality --runs 1000 --out benchmarks/results/simulation_equality.json

bench-sim: $(EVERYTHING) ## Measure the simulator's speed as ratios in one run.
	$(BIN)/python -m benchmarks.simulation_speed --out benchmarks/results/simulation_speed.json

bench-sim-before: $(EVERYTHING) ## The same beside another checkout, in turns: make bench-sim-before BEFORE=/tmp/before.
	$(BIN)/python -m benchmarks.simulation_speed --turns 11 --other $(BEFORE) --out benchmarks/results/simulation_speed_before.json

bench-sim-memory: $(EVERYTHING) ## Measure a study's memory with few and with many runs and draws.
	$(BIN)/python -m benchmarks.simulation_memory --out benchmarks/results/simulation_memory.json

bench-plan: $(EVERYTHING) ## Hold `bestarm plan` against experiments played draw by draw, and the demo's (15 minutes of one core).
	OMP_NUM_THREADS=1 nice -n 10 $(BIN)/python -m benchmarks.plan_accuracy

guarded-confirmation: $(EVERYTHING) ## Ask once more, by a plan of its own, whether the default errs less than TS-TC with Gaussian rewards.
	OMP_NUM_THREADS=1 nice -n 19 $(BIN)/python -m studies.guarded_confirmation
