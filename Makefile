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

.PHONY: help venv serve test test-fast check precommit hooks release-check browser lock clean

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

$(EVERYTHING): $(RUNTIME) requirements/everything.txt
	VIRTUAL_ENV=$(VENV) $(BIN)/uv pip install --quiet --compile-bytecode --require-hashes -r requirements/everything.txt
	@touch $@

venv: $(EVERYTHING) ## Make .venv with everything in it: the service, its extras, the tests' and the checks' tools.

serve: $(RUNTIME) ## Run the service and its dashboard on 127.0.0.1:8000 with the embedded database.
	$(BIN)/bestarm serve

test: $(EVERYTHING) browser ## Run the whole suite, on SQLite and on a PostgreSQL of its own, in a real browser; what measures time comes last and alone.
	$(BIN)/python -m pytest -n 2 -m "not serial" --cov
	$(BIN)/python -m pytest -m serial

test-fast: $(EVERYTHING) ## Run the tests without a browser, a study, a million rows or a second process, in less than a minute.
	BESTARM_LIVE_EXAMPLES=10 $(BIN)/python -m pytest -q -n 2 -m "not (process or browser or study or bulk or serial)"

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

browser:
	@scripts/need chromium chromium
	@scripts/need curl curl

include $(wildcard make/*.mk)

lock: $(BIN)/uv ## Resolve the dependencies anew into requirements/.
	$(COMPILE) pyproject.toml --extra postgres -o requirements/service.txt
	$(COMPILE) pyproject.toml --all-extras --group test --group check --group bench -o requirements/everything.txt

clean: ## Remove what the targets made.
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage*
