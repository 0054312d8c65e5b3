# Every target does its own set-up in .venv; only Python 3.11 or later and make are needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# the torch release the tests were written against; choose a CPU build if your index offers one
TORCH ?= torch==2.13.0
MYPY := $(shell grep -o 'mypy==[0-9.]*' pyproject.toml)
# what people install and what tests and documentation need, torch aside
EVERYTHING := .[dev,docs,dask,parquet,table,images,save,report,onnx]

.PHONY: demo test test-all test-lowest test-newest test-elsewhere test-browser lint format docs package audit licences torture tables bench figures release-check bench-peers bench-scale study-peers study-mixed clean

$(VENV)/core: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "pilae needs Python 3.11 or later")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -e ".[table,report]"
	touch $@

$(VENV)/dev: $(VENV)/core
	$(BIN)/python -m pip install --quiet "$(TORCH)"
	$(BIN)/python -m pip install --quiet -e ".[dev]"
	touch $@

$(VENV)/all: $(VENV)/dev
	$(BIN)/python -m pip install --quiet -e ".[dev,torch,dask,parquet,table,images,report,onnx]"
	touch $@

$(VENV)/docs: $(VENV)/core
	$(BIN)/python -m pip install --quiet -e ".[docs]"
	touch $@

demo: $(VENV)/core
	$(BIN)/python docs/examples/demo.py

test: $(VENV)/dev
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow and not browser"

test-all: $(VENV)/all
	$(BIN)/python -m pytest -m "not browser"

# every dependency at its lower bound (torch as above). Old releases warn about their own dependencies, which are new.
test-lowest:
	rm -rf .venv-lowest
	$(PYTHON) -m venv .venv-lowest
	$(PYTHON) -m tools.dependencies > .venv-lowest/lowest.txt
	.venv-lowest/bin/python -m pip install --quiet --no-compile -c .venv-lowest/lowest.txt "$(TORCH)" hatchling editables
	.venv-lowest/bin/python -m pip install --quiet --no-compile -c .venv-lowest/lowest.txt --no-build-isolation -e "$(EVERYTHING)"
	.venv-lowest/bin/python -m pytest -m "not slow and not browser" -W default
	.venv-lowest/bin/python -m sphinx --keep-going -q -b html docs .venv-lowest/docs

# whatever is newest today (torch as above)
test-newest:
	rm -rf .venv-newest
	$(PYTHON) -m venv .venv-newest
	.venv-newest/bin/python -m pip install --quiet --no-compile --upgrade --upgrade-strategy eager "$(TORCH)" -e "$(EVERYTHING)"
	.venv-newest/bin/python -m pytest -m "not slow and not browser"
	.venv-newest/bin/python -m sphinx -W --keep-going -q -b html docs .venv-newest/docs

# the tests as other machines run them: kernels of the BLAS, threads, busy cores, another order, other examples
test-elsewhere: $(VENV)/dev
	$(BIN)/python -m tools.elsewhere

# the report in Debian's Chromium; installs it where it is missing
test-browser: $(VENV)/dev
	command -v chromedriver || (apt-get update -q && apt-get install -qy chromium chromium-driver)
	$(BIN)/python -m pip install --quiet selenium
	$(BIN)/python -m pytest -m browser

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

.venv-build/done: pyproject.toml
	test -x .venv-build/bin/python || $(PYTHON) -m venv .venv-build
	.venv-build/bin/python -m pip install --quiet build hatchling twine $(MYPY)
	touch $@

# wheel and sdist into dist/: built twice, the same to the byte, installed into clean environments and tried there
package: .venv-build/done
	.venv-build/bin/python -m tools.package

.venv-audit/done:
	test -x .venv-audit/bin/python || $(PYTHON) -m venv .venv-audit
	.venv-audit/bin/python -m pip install --quiet --upgrade pip pip-audit
	touch $@

# known vulnerabilities of what pilae installs; exit status 3 where no vulnerability service answers
audit: .venv-audit/done
	.venv-audit/bin/python -m tools.audit

# docs/licences.md
licences: $(VENV)/all $(VENV)/docs
	$(BIN)/python -m pip install --quiet hatchling
	$(BIN)/python -m tools.licences

# everything that tries to break pilae, at full count: under 40 minutes on 2 cores
torture: $(VENV)/dev
	$(BIN)/python -m pytest tests/torture --full -v
	$(BIN)/python -m studies render

format: $(VENV)/dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# docs/_build/html/index.html; a warning is an error, and nothing is read from elsewhere
docs: $(VENV)/docs
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html

# the paper's tables: hours, can be interrupted and continued; QUICK=1 for minutes; PILAE_DATA is the folder with the data
tables: $(VENV)/dev
	QUICK=$(QUICK) $(BIN)/python -m studies.paper
	$(BIN)/python -m studies render

bench: $(VENV)/dev
	$(BIN)/python -m studies.speed.products
	$(BIN)/python -m studies.speed.paper_network
	$(BIN)/python -m studies.speed.sharing
	$(BIN)/python -m studies.tables.tabular
	$(BIN)/python -m studies.speed.command_line
	$(BIN)/python -m studies.images.patches
	$(BIN)/python -m studies.tables.beyond
	$(BIN)/python -m studies render

# other libraries live in an environment of their own
.venv-peers/done: studies/speed/peers.txt studies/tables/peers.txt
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet -e . -r studies/speed/peers.txt -r studies/tables/peers.txt
	touch $@

bench-peers: .venv-peers/done
	.venv-peers/bin/python -m studies.speed.peers
	.venv-peers/bin/python -m studies render

# 38 public tables, ten models: can be interrupted and continued; FOLDS=1 for a first look
FOLDS ?= 5
study-peers: .venv-peers/done
	.venv-peers/bin/python -m studies.tables.peers --folds $(FOLDS)
	.venv-peers/bin/python -m studies.tables.ranks
	.venv-peers/bin/python -m studies render

.venv-mixed/done: studies/tables/mixed.txt
	$(PYTHON) -m venv .venv-mixed
	.venv-mixed/bin/python -m pip install --quiet -e ".[table,save]" -r studies/tables/mixed.txt
	touch $@

# mixed tables beside skrub's pipelines: can be interrupted and continued; PARTS=folds FOLDS=2 for a first look, AGAIN=--again
# measures what is there already, REPEATS=3 more folds, PILAE_DATA is the folder that has messy/ in it
PARTS ?= folds command seeds
REPEATS ?= 1
study-mixed: .venv-mixed/done
	.venv-mixed/bin/python -m studies.tables.mixed --parts $(PARTS) --folds $(FOLDS) --repeats $(REPEATS) $(AGAIN)
	.venv-mixed/bin/python -m studies render

bench-scale: $(VENV)/dev
	$(BIN)/python -m studies.speed.scale
	$(BIN)/python -m studies.speed.scale large
	$(BIN)/python -m studies render

# every figure whose code has changed since it was measured: a day on a machine with nothing else on it; can be interrupted
figures: $(VENV)/dev
	$(BIN)/python -m studies.figures
	$(BIN)/python -m studies render

# which figures are of older code; exit status 2 where any is
release-check: $(VENV)/dev
	$(BIN)/python -m studies.figures --check

clean:
	rm -rf $(VENV) .venv-peers .venv-mixed .venv-lowest .venv-newest .venv-build .venv-audit build dist docs/_build docs/auto_examples docs/sg_execution_times.rst .pytest_cache .ruff_cache .mypy_cache .hypothesis
