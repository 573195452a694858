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

.PHONY: help venv serve test check browser lock clean

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

test: $(EVERYTHING) browser ## Run the whole suite, on SQLite and on a PostgreSQL of its own, in a real browser.
	$(BIN)/python -m pytest

check: $(EVERYTHING) ## Lint, types, layers, migrations against the tables, lock files against pyproject.toml.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	scripts/check-migrations
	scripts/check-locks

browser:
	@scripts/need chromium chromium
	@scripts/need curl curl

include $(wildcard make/*.mk)

lock: $(BIN)/uv ## Resolve the dependencies anew into requirements/.
	$(COMPILE) pyproject.toml --extra postgres -o requirements/service.txt
	$(COMPILE) pyproject.toml --all-extras --group test --group check --group bench -o requirements/everything.txt

clean: ## Remove what the targets made.
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
