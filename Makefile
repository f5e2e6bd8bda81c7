# Everything runs in an environment that is made here from Python 3.10 or newer.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: run test check lint types fresh build cff clean

run: $(VENV)/run.stamp  ## baseline -> validate -> score on the blind test
	$(BIN)/python baseline/baseline.py data/test_blind.csv results/predictions.csv
	$(BIN)/python scorer/validate.py predictions results/predictions.csv --gold data/test.csv
	$(BIN)/python scorer/score.py data/test.csv results/predictions.csv --output results/score_report.json

test: $(VENV)/dev.stamp  ## the test suite
	$(BIN)/python -m pytest

check: lint types fresh cff test  ## what CI runs

lint: $(VENV)/dev.stamp
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/dev.stamp
	$(BIN)/mypy

fresh: $(VENV)/dev.stamp  ## generated files agree with the data and the rules
	$(BIN)/python tools/build.py --check
	$(BIN)/python scorer/validate.py repository

build: $(VENV)/dev.stamp  ## write the generated files anew
	$(BIN)/python tools/build.py

cff: $(VENV)-cff/stamp  ## in an environment of its own: cffconvert needs an older jsonschema than the tests
	$(VENV)-cff/bin/cffconvert --validate

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "Python 3.10 or newer is needed: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/run.stamp: requirements.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	touch $@

$(VENV)/dev.stamp: requirements.txt requirements-dev.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	touch $@ $(VENV)/run.stamp

$(VENV)-cff/stamp:
	$(PYTHON) -m venv $(VENV)-cff
	$(VENV)-cff/bin/python -m pip install --quiet --disable-pip-version-check cffconvert==2.0.0
	touch $@

clean:  ## remove the environments and what runs leave behind
	rm -rf $(VENV) $(VENV)-cff results .pytest_cache .mypy_cache .ruff_cache
