# Every target makes the environment it needs; nothing has to be installed by hand but python3, python3-venv and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
OUT := out

.DEFAULT_GOAL := help
.PHONY: help demo test lint bench paper docs clean

help: ## show what there is
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-7s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.sim ## watch a small fleet find the best of five variants
	@$(BIN)/outvote demo

test: $(VENV)/.dev ## run all tests
	$(BIN)/python -m pytest

lint: $(VENV)/.dev ## ruff, mypy strict, import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.sim ## measure speed, each figure a ratio within one run
	$(BIN)/python benchmarks/core_speed.py

paper: $(VENV)/.sim ## the paper's four settings at 64 players, step by step (TRIALS=3)
	@mkdir -p $(OUT)/paper
	@for problem in 1 2; do for activity in uniform 80-20; do for protocol in dme edme me-local me-unlimited ucb-unlimited; do \
	  name=$(OUT)/paper/problem-$$problem-$$activity-$$protocol; \
	  $(BIN)/outvote simulate --protocol $$protocol --problem $$problem --activity $$activity --players 64 \
	    --horizon 1e6 --trials $(or $(TRIALS),3) --json $$name.json --plot $$name.png || exit 1; echo; \
	done; done; done

docs: $(VENV)/.dev ## write the generated parts of the documents anew
	$(BIN)/python docs/generate.py

clean: ## remove what these targets made
	rm -rf $(VENV) $(OUT) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

$(VENV)/.sim: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	  { echo "Python 3.11 or later is needed. On Debian: sudo apt-get install python3 python3-venv"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "Python's venv module is missing. Run: sudo apt-get install python3-venv"; exit 1; }
	@echo "Setting up $(VENV) (once)…"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install --constraint constraints.txt --editable '.[sim]'
	@touch $@

$(VENV)/.dev: $(VENV)/.sim
	@$(PIP) install --constraint constraints.txt --editable '.[sim,dev]'
	@touch $@
