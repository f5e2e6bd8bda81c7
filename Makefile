# Everything runs in environments that are made here from Python 3.10 or newer.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: run test check space lint types fresh audit cff labelling harness matrix compat build baselines bench publish clean

run: $(VENV)/run.stamp  ## baseline -> validate -> score on the blind test
	$(BIN)/python baseline/baseline.py data/test_blind.csv results/predictions.csv
	$(BIN)/python scorer/validate.py predictions results/predictions.csv --gold data/test.csv
	$(BIN)/python scorer/score.py data/test.csv results/predictions.csv --output results/score_report.json

test: $(VENV)/dev.stamp  ## the test suite
	$(BIN)/python -m pytest --numprocesses 2 --dist loadscope

check: lint types fresh audit cff test labelling harness matrix  ## what CI runs

space: $(VENV)/run.stamp  ## the metric's page on this machine: upload predictions and look at the scores
	$(BIN)/python rdod_metric/app.py

lint: $(VENV)/dev.stamp
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/dev.stamp
	$(BIN)/mypy

fresh: $(VENV)/dev.stamp  ## generated files agree with the data and the rules
	$(BIN)/python tools/build.py --check
	$(BIN)/python tools/baselines.py --check
	$(BIN)/python scorer/validate.py repository

audit: $(VENV)/dev.stamp  ## both releases against their thresholds: shortcuts, balance, copies
	mkdir -p results
	$(BIN)/python scorer/audit.py data/train.csv data/dev.csv data/test.csv --format html --output results/audit.html
	$(BIN)/python scorer/audit.py data/expanded/train.csv data/expanded/dev.csv data/expanded/test.csv --format html --output results/audit-expanded.html

build: $(VENV)/dev.stamp  ## write the generated files anew
	$(BIN)/python tools/build.py
	$(BIN)/python tools/baselines.py

baselines: $(VENV)/dev.stamp  ## the table of all baselines in baseline/README.md
	$(BIN)/python tools/baselines.py

bench: $(VENV)/dev.stamp  ## speed against named alternatives, side by side
	$(BIN)/python benchmarks/bench.py
	$(BIN)/python benchmarks/loading.py

publish: $(VENV)/run.stamp  ## say what would go to the Hub; tools/publish.py --no-dry-run sends it
	$(BIN)/python tools/publish.py

# ---- what needs an environment of its own
cff: $(VENV)-cff/stamp  ## cffconvert wants an older jsonschema than the tests
	$(VENV)-cff/bin/cffconvert --validate

$(VENV)-cff/stamp:
	$(PYTHON) -m venv --clear $(VENV)-cff
	$(VENV)-cff/bin/python -m pip install --quiet --disable-pip-version-check cffconvert==2.0.0
	touch $@

# one environment for each version of `datasets`, and `hub` for a Hub on the loopback
COMPAT := $(VENV)-compat
MATRIX := 3.6 4.0 newest
OLD := 2.14 2.21
BY_ID := tests/compat/hub.py tests/compat/space.py tests/compat/readme.py

matrix: $(VENV)/dev.stamp $(patsubst %,$(COMPAT)/%/stamp,$(MATRIX) hub)  ## loading with datasets 3.6, 4.0 and newest, and all by id from a local Hub
	COMPAT_VERSIONS="$(MATRIX)" $(BIN)/python -m pytest tests/compat/matrix.py $(BY_ID)

compat: $(VENV)/dev.stamp $(patsubst %,$(COMPAT)/%/stamp,$(OLD) $(MATRIX) hub)  ## the same with datasets 2.14 and 2.21 too
	COMPAT_VERSIONS="$(OLD) $(MATRIX)" $(BIN)/python -m pytest tests/compat/matrix.py $(BY_ID)

$(COMPAT)/%/stamp: tests/compat/requirements/%.txt
	$(PYTHON) -m venv --clear $(COMPAT)/$*
	$(COMPAT)/$*/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	touch $@

# Label Studio's SDK wants an older numpy than the tests
labelling: $(VENV)-labelling/stamp  ## annotation with Label Studio's own parser
	$(VENV)-labelling/bin/python -m pytest tests/test_annotate.py -k own_parser

$(VENV)-labelling/stamp:
	$(PYTHON) -m venv --clear $(VENV)-labelling
	$(VENV)-labelling/bin/python -m pip install --quiet --disable-pip-version-check "label-studio-sdk>=2,<3" "pytest>=8" "hypothesis==6.*"
	touch $@

# what Inspect and lm-evaluation-harness need is heavy, and pins much
harness: $(VENV)-harness/stamp $(COMPAT)/hub/stamp  ## Inspect and lm-evaluation-harness end to end, and every command of docs/run-a-model.md
	$(VENV)-harness/bin/python -m pytest tests/test_inspect.py tests/test_lm_eval.py tests/test_run_a_model.py

$(VENV)-harness/stamp: harness/requirements.txt
	$(PYTHON) -m venv --clear $(VENV)-harness
	$(VENV)-harness/bin/python -m pip install --quiet --disable-pip-version-check --no-compile -r $< "pytest>=8" "hypothesis==6.*"
	touch $@

# ---- the environment of everything else
$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "Python 3.10 or newer is needed: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/run.stamp: requirements.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	touch $@

$(VENV)/dev.stamp: requirements.txt requirements-dev.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	touch $@ $(VENV)/run.stamp

clean:  ## remove the environments and what runs leave behind
	rm -rf $(VENV) $(VENV)-* results .pytest_cache .mypy_cache .ruff_cache
