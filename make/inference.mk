# The studies behind docs/inference.md. Each writes its figures to docs/inference/; the report turns them into tables and pictures.
STUDY := OMP_NUM_THREADS=1 nice -n 10 $(BIN)/python -m

INFERENCE := inference-coverage inference-lift inference-kept-verdicts inference-verdicts inference-verdict-baselines inference-rates inference-unequal inference-forecast inference-width inference-peeking inference-calibration inference-speed inference-report
.PHONY: inference-study inference-speed-before recommendation-speed $(INFERENCE)

inference-study: $(INFERENCE) ## All studies of the inference: coverage, lifts, verdicts, width, peeking, calibration, cost (some hours on one core).

inference-coverage: $(EVERYTHING) ## Coverage and false separation, 2,000 runs of 5,000 draws a look after each (goes on where it stopped).
	$(STUDY) benchmarks.inference_coverage

inference-lift: $(EVERYTHING) ## Coverage of the lift over the control, 2,000 runs of 5,000 draws (goes on where it stopped).
	$(STUDY) benchmarks.inference_lift

inference-kept-verdicts: $(EVERYTHING) ## Verdicts that are kept: taken back, wrong, over 1,000 experiments a case (goes on where it stopped).
	$(STUDY) benchmarks.inference_kept_verdicts

inference-verdicts: $(EVERYTHING) ## Draws until the leader is separated, against the test before.
	$(STUDY) benchmarks.inference_verdicts
	$(STUDY) benchmarks.inference_verdicts --runs 100 --fresh

inference-verdict-baselines: $(EVERYTHING) ## Draws until the leader is separated under the default, TS-TC, EB-TC, EB-TC-eps0 (goes on where it stopped).
	$(STUDY) benchmarks.inference_verdict_baselines

inference-unequal: $(EVERYTHING) ## What the pair test needs where counts are unequal, against the product of two mixtures.
	$(STUDY) benchmarks.inference_unequal

inference-rates: $(EVERYTHING) ## The fewest draws to a verdict that three sums allow, and every reward kept.
	$(STUDY) benchmarks.inference_rates

inference-forecast: $(EVERYTHING) ## How often forecasts of the verdict come true.
	$(STUDY) benchmarks.inference_forecast

inference-width: $(EVERYTHING) ## Width against an interval for one planned look.
	$(STUDY) benchmarks.inference_width

inference-peeking: $(EVERYTHING) ## One arm at full alpha: our intervals, the drift check and a naive t-interval.
	$(STUDY) benchmarks.inference_peeking

inference-calibration: $(EVERYTHING) ## The error estimate against the observed error.
	$(STUDY) benchmarks.inference_calibration

inference-speed: $(EVERYTHING) ## Processor time of a recommendation's inference.
	$(STUDY) benchmarks.inference_speed

inference-speed-before: $(EVERYTHING) ## The same beside another checkout, in turns: make inference-speed-before BEFORE=/tmp/before.
	$(STUDY) benchmarks.inference_speed_before $(BEFORE)

recommendation-speed: $(EVERYTHING) ## The whole recommendation over HTTP beside another checkout, in turns: make recommendation-speed BEFORE=/tmp/before.
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.recommendation_speed $(BEFORE)

inference-report: $(EVERYTHING) ## Tables and pictures of docs/inference.md from the studies' results.
	$(STUDY) benchmarks.inference_report
