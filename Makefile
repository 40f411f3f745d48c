# Each target creates and updates .venv as needed.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
REPO ?=
PLAN ?=
WORKERS ?= 3
JSON ?=
ONLY ?=
SAMPLE ?=
PARALLEL := --numprocesses=4 # even on two cores: many tests wait for processes
MEMORY := $(shell df --output=target,avail -k /dev/shm 2>/dev/null | awk '$$1 == "/dev/shm" && $$2 > 8000000 {print $$1}')
# On a disk, tests wait for it a third of their time.
IN_MEMORY := $(if $(MEMORY),PYTEST_DEBUG_TEMPROOT=$(MEMORY))
COMPUTING := --numprocesses=logical --maxprocesses=4
PRETTIER = $(and $(shell command -v node),$(wildcard node_modules/.bin/prettier))
unexport PYTHONDONTWRITEBYTECODE # compiling the tests takes each process longer than collecting them
ON_BOTH := $(addprefix tests/,chaos services shells store story)
CHEAP := not browser and not chaos and not postgres and not node and not long

.PHONY: demo test test-all test-postgres lab lint format bench mutants docs notebooks pictures soak suites clean help

help:
	@echo "make demo       run the quickstart headless (REPO=… PLAN=… WORKERS=… JSON=1)"
	@echo "make lab        open the quickstart in JupyterLab"
	@echo "make test       run the default tier of the tests"
	@echo "make test-all   run the notebooks and the tiers that test omits: browser, chaos, postgres, node, long"
	@echo "make test-postgres  run the tests with projects once more, on PostgreSQL; part of test-all"
	@echo "make lint       check format, style, types and imports; after npm ci also JavaScript and CSS"
	@echo "make bench      run the benchmarks (ONLY=B11 for one row, QUICK=1 for a quick check)"
	@echo "make mutants    count the mutants that the nearest tests kill (SAMPLE=300 of each area, ONLY=rules for one)"
	@echo "make docs       generate the reference, the commands and the index of the code"
	@echo "make notebooks  run the notebooks and store the outputs that the tests compare"
	@echo "make pictures   make the pictures of the documents in Chromium"
	@echo "make format     format all code"
	@echo "make soak       run the soak tests"
	@echo "make suites     compare test suites of public projects outside and in a box (ONLY=joblib for one)"
	@echo "make clean      remove .venv and build output"

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Workbench needs Python 3.11 or newer: make PYTHON=python3.12 …"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.base: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[demo]'
	@touch $@

$(VENV)/.lab: $(VENV)/.base
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[lab]'
	@touch $@

$(VENV)/.test: $(VENV)/.base
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[test]'
	@touch $@ $(VENV)/.lab

$(VENV)/.lint: $(VENV)/.base
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[lint]'
	@touch $@

$(VENV)/.bench: $(VENV)/.base
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[bench]'
	@touch $@

$(VENV)/.mutants: $(VENV)/.test
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[mutants]'
	@touch $@

demo: $(VENV)/.base
	@$(BIN)/workbench demo --workers $(WORKERS) $(if $(REPO),--repo "$(REPO)") $(if $(PLAN),--plan "$(PLAN)") $(if $(JSON),--json)

lab: $(VENV)/.lab
	$(BIN)/jupyter lab notebooks/00_quickstart.ipynb

test: $(VENV)/.test
	$(IN_MEMORY) $(BIN)/python -m pytest $(PARALLEL) --dist=worksteal --ignore=tests/browser -m "$(CHEAP)"

test-all: $(VENV)/.test
	WORKBENCH_QUICKSTART_APPROVE=auto $(BIN)/python -m pytest --nbval-lax --nbval-current-env --nbval-sanitize-with=data/starter/nbval.cfg --nbval-cell-timeout=300 --timeout=600 $(COMPUTING) --dist=loadfile notebooks/
	$(IN_MEMORY) $(BIN)/python -m pytest $(PARALLEL) --dist=worksteal -m "not ($(CHEAP))"
	$(MAKE) test-postgres

test-postgres: $(VENV)/.test
	$(IN_MEMORY) $(BIN)/python -m pytest $(PARALLEL) --dist=worksteal --store=postgres -m "not browser and not postgres and not node" $(ON_BOTH)

lint: $(VENV)/.lint
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	@$(if $(PRETTIER),npm run --silent lint,echo "JavaScript and CSS were not checked. To check them, install Node.js and run npm ci.")

format: $(VENV)/.lint
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	@$(if $(PRETTIER),npm run --silent format,echo "JavaScript and CSS were not formatted. To format them, install Node.js and run npm ci.")

bench: $(VENV)/.bench
	$(BIN)/python -m tests.bench $(ONLY)

mutants: $(VENV)/.mutants
	$(BIN)/python -m tests.mutants $(if $(SAMPLE),--sample $(SAMPLE)) $(ONLY)

docs: $(VENV)/.test
	$(BIN)/python -m docs.generator

notebooks: $(VENV)/.test
	$(BIN)/python -m tests.notebooks

pictures: $(VENV)/.test
	WORKBENCH_PICTURES=1 $(BIN)/python -m pytest -m browser tests/browser/test_pictures.py

soak: $(VENV)/.test
	WORKBENCH_SOAK=1 $(BIN)/python -m pytest -m "chaos or hypothesis or long" --timeout=3600

suites: $(VENV)/.test
	$(BIN)/python -m tests.suites $(ONLY)

clean:
	rm -rf $(VENV) demo-output build dist mutants
