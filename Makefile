# Every target makes the environment it needs; nothing has to be installed by hand but python3, python3-venv and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
OUT := out

.DEFAULT_GOAL := help
.PHONY: help demo test test-all lint bench paper docs gallery site screenshots attacks hostile rewards faults simulate-faults blocks validity load soak compiled clean

help: ## show what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.run ## watch a fleet of real processes find the best of five variants
	@$(BIN)/outvote demo $(DEMO)

PYTEST = PATH="$(CURDIR)/$(VENV)/tools/usr/bin:$$PATH" $(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist worksteal
SLOW := network or browser or openfeature or deploy or statistical or faults

# In CI the quick tests also say which part of the code they run.
COVERAGE := $(if $(CI),--cov outvote --cov-report term:skip-covered)

test: compiled ## run the quick tests: units, properties, a network in one process, one demo
	$(PYTEST) -m "not ($(SLOW))" --durations 20 $(COVERAGE)

test-all: compiled ## run the other tests: real processes, browsers, stock clients, statistics, faults
	@tests/tools.sh $(VENV)/tools
	$(PYTEST) -m "$(SLOW)" --durations 20

compiled: $(VENV)/.compiled

lint: $(VENV)/.dev ## ruff, mypy strict, import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.dev ## measure speed and compare with other libraries (BENCH=--quick for a look)
	$(BIN)/python benchmarks/run.py $(BENCH)

paper: $(VENV)/.run ## rerun the paper: figures, claims and report in out/paper
	@$(BIN)/outvote paper --out $(OUT)/paper

docs: $(VENV)/.dev paper ## write the generated parts of the documents anew
	@mkdir -p docs/figures
	cp $(OUT)/paper/claims.json docs/claims.json
	cp $(OUT)/paper/*.png docs/figures/
	COLUMNS=120 $(BIN)/outvote demo | sed 's/ *$$//' > docs/demo.txt.part && mv docs/demo.txt.part docs/demo.txt
	$(BIN)/python docs/generate.py

gallery: $(VENV)/.run ## run the programs in examples and take their pictures for docs/gallery.md
	@mkdir -p $(OUT)/gallery docs/figures
	cd $(OUT)/gallery && $(CURDIR)/$(BIN)/python $(CURDIR)/examples/compare_protocols.py
	cd $(OUT)/gallery && $(CURDIR)/$(BIN)/python $(CURDIR)/examples/replay_trace.py
	cd $(OUT)/gallery && $(CURDIR)/$(BIN)/python $(CURDIR)/examples/arm_selection.py
	cd $(OUT)/gallery && $(CURDIR)/$(BIN)/python $(CURDIR)/examples/embed_a_player.py
	cd $(OUT)/gallery && $(CURDIR)/$(BIN)/python $(CURDIR)/examples/delayed_conversions.py
	for each in $(OUT)/gallery/*.png; do cp $$each docs/figures/gallery-$$(basename $$each | tr _ -); done

site: $(VENV)/.dev ## the documents as a site in out/site, to be read without the internet
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict --site-dir $(OUT)/site
	@echo "$(OUT)/site/index.html"

screenshots: $(VENV)/.dev ## take the pictures of the dashboard anew (needs Debian's package chromium-headless-shell)
	$(BIN)/python docs/screenshots.py
	$(BIN)/python docs/moving_picture.py

attacks: $(VENV)/.dev ## attack a fleet with credentials in every way we know, and write the table in docs/security.md
	OUTVOTE_ATTACKS=$(CURDIR)/docs/attacks.json $(BIN)/python -m pytest -q tests/attacks
	$(BIN)/python docs/generate.py

hostile: $(VENV)/.dev ## what hostile clients cost a listener, for docs/security.md (HOSTILE="--before DIR" to compare)
	$(BIN)/python benchmarks/hostile/measure.py --out benchmarks/hostile/measures.json $(HOSTILE)
	$(BIN)/python docs/generate.py

rewards: $(VENV)/.dev ## what becomes of rewards on real processes: half an hour (REWARDS="--before DIR" to compare)
	$(BIN)/python benchmarks/rewards/measure.py $(REWARDS)
	$(BIN)/python docs/generate.py

faults: $(VENV)/.dev ## faults of all kinds on real fleets, hundreds of schedules (FAULTS="--schedules 20" for a look)
	PYTHONPATH=tests:. $(BIN)/python -m faults.run --out $(OUT)/faults $(FAULTS)

simulate-faults: $(VENV)/.dev ## faults on simulated fleets, about a thousand a minute (SIMULATED="--schedules 50000")
	PYTHONPATH=tests:. $(BIN)/python -m faults.simulated.run $(SIMULATED)

blocks: $(VENV)/.dev ## what blocks need beside Tally, for docs/blocks.md (BLOCKS="--only table" for a part)
	$(BIN)/python benchmarks/blocks/measure.py $(BLOCKS)

validity: $(VENV)/.dev ## the guarantee of blocks at large: enumerations, hard worlds, faults that must show, 20 minutes
	$(BIN)/python benchmarks/validity/measure.py $(VALIDITY)

load: $(VENV)/.dev ## 5,000 edges on this machine for ten minutes (LOAD=--smoke for half a minute)
	$(BIN)/python benchmarks/load/load.py $(LOAD)

soak: $(VENV)/.dev ## an hour with edges and tasks that come and go, then 6,000 tasks at one edge: does anything grow?
	$(BIN)/python benchmarks/load/soak.py
	$(BIN)/python benchmarks/load/churn.py

clean: ## remove what these targets made
	rm -rf $(VENV) .env-peers $(OUT) .coverage .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	  { echo "Python 3.11 or later is needed. On Debian: sudo apt-get install python3 python3-venv"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "Python's venv module is missing. Run: sudo apt-get install python3-venv"; exit 1; }
	@echo "Setting up $(VENV) (once)…"
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.run: $(VENV)/.made pyproject.toml constraints.txt
	@$(PIP) install --constraint constraints.txt --editable '.[sim,network,client,dashboard]'
	@touch $@

$(VENV)/.dev: $(VENV)/.made pyproject.toml constraints.txt
	@$(PIP) install --constraint constraints.txt --editable '.[sim,dask,network,client,openfeature,dashboard,bench,docs,dev]'
	@touch $(VENV)/.run $@

$(VENV)/.compiled: $(VENV)/.dev $(wildcard src/outvote/simulation/kernels/*.py)
	@echo "Compiling the simulator (once)…"
	@$(BIN)/python tests/compile.py
	@touch $@
