# Everything a person does here, by name: `make` alone prints the list.
# Each target sets up .venv by itself, and again whenever what is to be installed has changed.

PYTHON ?= python3# the interpreter that .venv is made with, 3.11 or newer
WORKERS ?= 2# processes that share the tests; 0 runs them in this one
DEMO := runs/quickstart

BIN := .venv/bin
INSTALLED := .venv/installed# what a user needs
FOR_WORK := .venv/installed-dev# and what is needed to check a change
FOR_LONG := .venv/installed-long# and what few tests need, and the site of the pages
FOR_LAB := .venv/installed-lab# and what opens notebooks
PYTEST := $(BIN)/python -m pytest
SHARED := -n $(WORKERS) --dist worksteal# neighbours stay together, so what a file sets up is set up once

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules

.PHONY: help
help: ## Print this list.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: demo
demo: $(INSTALLED) ## Run four protocols over LTE-M cells, print the comparison and draw the figures.
	$(BIN)/fedsim run scenarios/quickstart.yaml --out $(DEMO) $(if $(wildcard $(DEMO)),--resume)
	$(BIN)/fedsim plot $(DEMO)
	@echo
	@echo "The figures are in $(DEMO)/figures; overview.png shows in one look who costs what."
	@echo "Your shell finds the command fedsim after:  source .venv/bin/activate"
	@echo "Then go on with README.md, or with a scenario of your own:  fedsim new plant"

.PHONY: lab
lab: $(FOR_LAB) ## Open the notebooks in JupyterLab, in the browser.
	$(BIN)/jupyter lab --notebook-dir notebooks $(if $(filter 0,$(shell id -u)),--allow-root)

.PHONY: test
test: lint ## Check all that each change must pass (under 6 minutes on 2 cores): style, types, tests, doctests.
	$(PYTEST) $(SHARED) -m "not long"

.PHONY: test-long
test-long: $(FOR_LONG) ## Check what `make test` leaves out (under 60 minutes): tests marked long, and more drawn examples.
	$(PYTEST) $(SHARED) -m "long or drawn" --hypothesis-profile=long

.PHONY: check
check: lint ## Check the same as `make test` in about a minute: without the tests marked slow or data.
	$(PYTEST) $(SHARED) -m "not slow and not data and not long"

.PHONY: lint
lint: $(FOR_WORK) ## Check style, types and layers; run no test.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

.PHONY: format
format: $(FOR_WORK) ## Rewrite the sources in the one style, and sort their imports.
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

.PHONY: browser
browser: $(FOR_LONG) ## Open reports in a browser and test them there; it needs chromium, which Debian's apt-get brings.
	$(PYTEST) tests/report/test_report_in_browser.py

.PHONY: laws
laws: $(FOR_WORK) ## Test the laws: conservation, theory, and what must not change a result.
	$(PYTEST) tests/laws

.PHONY: mutants
mutants: $(FOR_WORK) ## Change a copy of the source, or of ONLY=fedsim.grouping, bit by bit; list what no test sees (hours).
	PYTHONPATH=tests $(BIN)/python -m mutants.survivors $(ONLY) --workers $(WORKERS)

.PHONY: golden
golden: $(FOR_WORK) ## Compare today's traces with yesterday's.
	$(PYTEST) tests/golden

.PHONY: golden-accept
golden-accept: $(FOR_WORK) ## Write today's traces over yesterday's; read the difference before you commit it.
	FEDSIM_GOLDEN=accept $(PYTEST) tests/golden

.PHONY: bench
bench: $(FOR_WORK) ## Measure how fast the simulator is.
	$(PYTEST) benchmarks --benchmark-only

.PHONY: bench-network
bench-network: $(FOR_WORK) ## Measure how a network study grows, from 1,000 to 1,000,000 sensors (a quarter of an hour, 10 GB).
	$(BIN)/python benchmarks/network_growth.py

.PHONY: bench-groups
bench-groups: $(FOR_WORK) ## Measure rounds of groups in sequence against FedAvg, and the memory of HFedMS (10 minutes).
	$(BIN)/python -m benchmarks.groups

.PHONY: bench-training
bench-training: $(FOR_WORK) ## Compare training with plain loops, Flower, pfl and FedLab (25 minutes, 4 GB of environments).
	$(BIN)/python -m benchmarks.training

.PHONY: bench-models
bench-models: $(FOR_WORK) ## Compare a round of each model with a tuned PyTorch loop, for three batch sizes (half an hour).
	$(BIN)/python -m benchmarks.models

.PHONY: docs
docs: $(FOR_WORK) ## Write the reference pages again, from the code.
	$(BIN)/python docs/generate.py

.PHONY: site
site: $(FOR_LONG) ## Build the site of all pages into build/site; a broken link makes it fail (half a minute).
	@rm -rf build/site
	$(BIN)/python -m sphinx -q -E -a -W --keep-going -c docs/site -d build/site-parsed . build/site
	@echo "Open build/site/index.html in a browser."

.PHONY: scenarios
scenarios: $(FOR_WORK) ## Run the scenarios on seeds 1 to 3, or those in NAMES, and write their table (an hour or more).
	$(BIN)/python docs/scenario_table.py $(NAMES)

.PHONY: validation
validation: $(FOR_WORK) ## Work out the published numbers of docs/validation.csv again, and write docs/validation.md.
	$(BIN)/python docs/validation.py

.PHONY: notebooks
notebooks: $(FOR_WORK) ## Execute the notebooks, and keep their new outputs in them.
	$(BIN)/jupyter execute --inplace notebooks/*.ipynb

.PHONY: clean
clean: ## Remove .venv, the peers' environments and what the tools left behind; runs/ is yours and stays.
	rm -rf .venv build dist *.egg-info .benchmarks .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	rm -rf mutants benchmarks/peers/.envs
	find . -name __pycache__ -prune -exec rm -rf {} +

# Workers share the cores, so each computes with one thread; results do not depend on it, the time they take does.
test test-long check browser laws mutants golden golden-accept: export OMP_NUM_THREADS = 1
# Each worker and each process of a test would compile all modules anew if the environment forbade keeping what it made.
test test-long check laws mutants golden golden-accept: export PYTHONDONTWRITEBYTECODE =

$(INSTALLED): setup.cfg pyproject.toml constraints.txt .ci/install.py
	@command -v $(PYTHON) >/dev/null || { \
	    echo "There is no '$(PYTHON)' here, and fedsim needs Python 3.11 or newer."; \
	    echo "Name another one: make PYTHON=/path/to/python3.12"; exit 1; } >&2
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "fedsim needs Python 3.11 or newer, and '$(PYTHON)' is $$($(PYTHON) --version 2>&1)."; \
	    echo "Name another one: make PYTHON=/path/to/python3.12"; exit 1; } >&2
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	    echo "'$(PYTHON)' cannot make a virtual environment: its module venv or ensurepip is missing."; \
	    echo "On Debian and Ubuntu: apt-get install python3-venv"; exit 1; } >&2
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear .venv
	@$(BIN)/python .ci/install.py
	@touch $@

$(FOR_WORK): $(INSTALLED)
	@$(BIN)/python .ci/install.py dev
	@touch $@

$(FOR_LONG): $(FOR_WORK)
	@$(BIN)/python .ci/install.py long
	@touch $@

$(FOR_LAB): $(INSTALLED)
	@$(BIN)/python .ci/install.py lab
	@touch $@
