# The two commands that matter: `make serve` and `make test`. `make help` lists the rest.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUNTIME := $(VENV)/.runtime-installed
EVERYTHING := $(VENV)/.everything-installed
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --no-header --no-annotate

.PHONY: help venv serve test test-fast check precommit hooks release-check browser node-packages lock clean

help: ## List the targets.
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(BIN)/uv: requirements/uv.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements/uv.txt
	@touch $@

$(RUNTIME): $(BIN)/uv requirements/service.txt
	VIRTUAL_ENV=$(VENV) $(BIN)/uv pip install --quiet --compile-bytecode --require-hashes -r requirements/service.txt
	VIRTUAL_ENV=$(VENV) $(BIN)/uv pip install --quiet --no-deps --editable .
	@touch $@

$(EVERYTHING): $(RUNTIME) requirements/everything.txt client/pyproject.toml
	VIRTUAL_ENV=$(VENV) $(BIN)/uv pip install --quiet --compile-bytecode --require-hashes -r requirements/everything.txt
	VIRTUAL_ENV=$(VENV) $(BIN)/uv pip install --quiet --no-deps --editable client
	@touch $@

venv: $(EVERYTHING) ## Make .venv with everything in it: the service, its extras, the tests' and the checks' tools.

serve: $(RUNTIME) ## Run the service and its dashboard on 127.0.0.1:8000 with the embedded database.
	$(BIN)/bestarm serve

# What failed beside other tests, or in a moment in which the machine was away, is tried once more by itself: what fails again fails
# the run, and what does not stands in the output all the same, to be mended.
ALONE = $(BIN)/python -m pytest --last-failed --last-failed-no-failures none

# Tests start dozens of services: none of them is to compile its sources again, whatever the shell says.
test test-fast: export PYTHONDONTWRITEBYTECODE =
test: $(EVERYTHING) browser node-packages ## Run the whole suite, on SQLite and on a PostgreSQL of its own, in a real browser; what measures time comes last and alone.
	$(BIN)/python -m pytest -n 3 -m "not (serial or containers)" --cov --cov-report= --cov-fail-under=0 || $(ALONE)
	$(BIN)/python -m pytest -m serial || $(ALONE)
	$(BIN)/coverage report --skip-covered

test-fast: $(EVERYTHING) ## Run the tests without a browser, a study, a million rows or a second process, in two minutes or less.
	BESTARM_LIVE_EXAMPLES=10 $(BIN)/python -m pytest -q -n 2 -m "not (process or browser or study or bulk or serial or containers)"

# Not made to depend on the environment, so that no commit waits for a download.
precommit: ## Lint, format, types, layers: what every commit passes.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

hooks: ## Let git run `make precommit` before every commit.
	printf '#!/bin/sh\nexec make --silent precommit\n' > "$$(git rev-parse --git-path hooks)/pre-commit"
	chmod +x "$$(git rev-parse --git-path hooks)/pre-commit"

check: $(EVERYTHING) precommit ## The same, and migrations against the tables on both databases, lock files against pyproject.toml.
	$(BIN)/python -m scripts.check_migrations
	scripts/check-locks

release-check: $(EVERYTHING) ## Build the package and try it in an empty environment; with RELEASE=1 it must be dated in CHANGELOG.md.
	$(BIN)/python -m scripts.release_check $(if $(RELEASE),--release)

NODE_PACKAGES := tests/openfeature/node_modules/.package-lock.json
$(NODE_PACKAGES): tests/openfeature/package-lock.json
	@scripts/need npm npm
	npm ci --prefix tests/openfeature --no-audit --no-fund --loglevel=error
	@touch $@

node-packages: $(NODE_PACKAGES) ## Install OpenFeature's own providers for Node and browsers, which the tests use.

browser:
	@scripts/need chromium chromium
	@scripts/need curl curl
	@scripts/need openssl openssl

include $(wildcard make/*.mk)

lock: $(BIN)/uv ## Resolve the dependencies anew into requirements/.
	$(COMPILE) pyproject.toml --extra postgres --extra oidc --extra otel -o requirements/service.txt
	$(COMPILE) pyproject.toml --all-extras --group test --group check --group bench --group fuzz -o requirements/everything.txt

clean: ## Remove what the targets made.
	rm -rf $(VENV) tests/openfeature/node_modules build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage*
