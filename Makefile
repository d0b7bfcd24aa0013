# Needs python3 with venv and pip, and make. `make install` comes by itself before the targets that need it.

PYTHON ?= python3
VENV ?= .venv
# Workers of pytest.
WORKERS ?= 2
# Examples for each property-based test in `make fuzz`.
FUZZ_EXAMPLES ?= 2000

PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check
TORCH := $(shell sed -n 's/^\(torch==[^ ;]*\).*/\1/p' constraints.txt)
EXTRAS := dev,docs,export,parquet,report,tensorboard,yaml
STAMP := $(VENV)/.installed
BENCH_STAMP := $(VENV)/.installed-bench
PIP_DEPENDENCIES := setup.cfg setup.py pyproject.toml constraints.txt $(wildcard tkg_incremental/ops/native/*.[ch])

# A mirror of the raw files beside the checkout, for machines without internet access.
ifeq ($(strip $(TKG_INCREMENTAL_MIRROR)),)
ifneq ($(wildcard ../shared/data/.),)
export TKG_INCREMENTAL_MIRROR := $(abspath ../shared/data)
endif
endif

.PHONY: help install demo test test-all lint format types docs bench fuzz clean

help:  ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 14

install: $(STAMP)  ## Make the virtual environment, with the package in it (editable)

# torch goes first and pinned: whatever is resolved later must take it as it is.
$(STAMP): $(PIP_DEPENDENCIES)
	test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet -c constraints.txt $(TORCH)
	$(PIP) install --quiet -c constraints.txt -e ".[$(EXTRAS)]"
	touch $@

$(BENCH_STAMP): $(STAMP)
	$(PIP) install --quiet -c constraints.txt -e ".[$(EXTRAS),bench]"
	touch $@

demo: $(STAMP)  ## Train a live graph of world leaders and update it year by year, into graphs/demo
	$(PY) examples/live_leaders.py --graph graphs/demo $(ARGS)

# One thread of torch for each worker: more only compete for the same cores.
test: $(STAMP)  ## Run the tests
	OMP_NUM_THREADS=1 $(PY) -m pytest -n $(WORKERS) $(ARGS)

test-all: $(STAMP)  ## Run the tests, the slow ones too
	OMP_NUM_THREADS=1 $(PY) -m pytest -n $(WORKERS) -m "" $(ARGS)

lint: $(STAMP)  ## Check style and formatting
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

format: $(STAMP)  ## Apply style and formatting
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

types: $(STAMP)  ## Check the type hints
	$(PY) -m mypy

docs: $(STAMP)  ## Build the documentation into docs/_build/html; warnings are errors
	$(PY) -m sphinx -W --keep-going -q -b html -d docs/_build/doctrees docs docs/_build/html
	$(PY) -m sphinx -W --keep-going -q -b doctest -d docs/_build/doctrees docs docs/_build/doctest

# A whole run includes the audit of erasures, which fails if something is left.
bench: $(BENCH_STAMP)  ## Run the benchmarks
	$(PY) -m benchmarks $(ARGS)
	$(if $(ARGS),,$(PY) -m benchmarks.erasure_audit)

fuzz: $(STAMP)  ## Run the property-based tests with many more examples
	$(PY) -c 'import sys, pytest; from hypothesis import settings; \
	settings.register_profile("fuzz", max_examples=$(FUZZ_EXAMPLES), deadline=None); \
	settings.load_profile("fuzz"); \
	sys.exit(pytest.main(["-m", "hypothesis", "tests"] + sys.argv[1:]))' $(ARGS)

clean:  ## Remove what was built, but not the virtual environment, the data or the runs
	rm -rf build dist docs/_build docs/generated *.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -path ./$(VENV) -prune -o -type d -name __pycache__ -exec rm -rf {} +
