# What is deployed, for real: containers, proxies, alerts.
.PHONY: test-compose check-deployment deployment-tools bench-restarts bench-sizing

# Debian has these; the tests and checks run them as programs, none of them as a service of this machine.
deployment-tools:
	@scripts/need nginx nginx-light
	@scripts/need haproxy haproxy
	@scripts/need caddy caddy
	@scripts/need prometheus prometheus
	@scripts/need kubectl kubernetes-client
	@scripts/need systemd-analyze systemd

test: deployment-tools
check: check-deployment

check-deployment: $(EVERYTHING) ## Hold what is deployed to its own tools: Dockerfiles, compose file, shell scripts, alerts.
	@scripts/need promtool prometheus
	$(BIN)/hadolint Dockerfile testing/containers/stand_ins/*/Dockerfile
	$(BIN)/check-jsonschema --builtin-schema vendor.compose-spec docker-compose.yml
	$(BIN)/docker-compose --profile '*' config --quiet
	$(BIN)/shellcheck .ci/run $$(git grep -lE '^#!.*\b(ba)?sh$$' -- scripts testing)
	promtool check config deploy/prometheus/prometheus.yml
	promtool test rules deploy/prometheus/rules_test.yml

test-compose: $(EVERYTHING) ## Build the container files and bring them up, on a Docker engine of its own (root, Debian 12).
	$(BIN)/python -m pytest -m containers --durations=0 tests/containers

bench-restarts: $(EVERYTHING) deployment-tools ## Twenty restarts under load through nginx and haproxy.
	$(BIN)/python -m benchmarks.restarts

bench-sizing: $(EVERYTHING) wrk ## What asks cost in processor time and memory, and draws in room; writes benchmarks/results/sizing.json.
	$(BIN)/python -m benchmarks.sizing
