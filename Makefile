# Two commands do everything: `make demo` and `make test`. Each makes the virtual environment that it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
INSTALLED := $(VENV)/.installed
DEMO := $(VENV)-demo

.PHONY: help demo test check format bench oldest docs clean

help:
	@echo "make demo    install, then run 'fairfrontier demo'"
	@echo "make test    install, then run the whole test suite (brings a browser for the tests of the report)"
	@echo "make check   formatting, lint and types"
	@echo "make format  put the code into shape"
	@echo "make bench   measure against rivals; writes results/benchmarks.md"
	@echo "make docs    build the documentation in docs/_build/html, with warnings as errors"
	@echo "make oldest  run the tests on the oldest supported versions"

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

# The environment of the tests has all that the demo needs. Without it the demo makes a small one, where Python compiles
# what it imports and nothing else.
ifneq ($(wildcard $(INSTALLED)),)
demo:
	$(BIN)/fairfrontier demo --out demo --force
else
$(DEMO)/.installed: pyproject.toml
	$(PYTHON) -m venv $(DEMO)
	$(DEMO)/bin/python -m pip --disable-pip-version-check install --quiet --no-compile --editable '.[demo]'
	@touch $@

demo: $(DEMO)/.installed
	$(DEMO)/bin/fairfrontier demo --out demo --force
endif

# One thread per worker: OpenMP's threads wait for one another by spinning, and two workers with two threads each take many
# times as long on two cores that have other work to do.
test: $(INSTALLED) browser
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

check: $(INSTALLED)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(INSTALLED)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(INSTALLED)
	$(BIN)/python -m benchmarks --json results/benchmarks.json --markdown results/benchmarks.md

docs: $(INSTALLED)
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html

# Learners that are networks are left out: PyTorch alone would take as long as everything else.
oldest:
	$(PYTHON) -m venv $(VENV)-oldest
	$(VENV)-oldest/bin/python -m pip --disable-pip-version-check install --quiet --constraint constraints-oldest.txt --editable '.[cli,composite,hinge,learners,pandas,plot,report,save]' cvxpy hypothesis polars pytest pytest-xdist
	OMP_NUM_THREADS=1 $(VENV)-oldest/bin/python -m pytest -n 2 --dist worksteal -k 'not Adversarial and not KernelFair' tests/test_metrics.py tests/test_identify*.py tests/test_quantify*.py tests/test_inference.py tests/test_optimize*.py tests/test_mixture.py tests/test_persistence.py tests/test_bad_input.py tests/test_robustness.py tests/test_learners_checks.py

.PHONY: browser
browser:
	@command -v chromium >/dev/null || (apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium >/dev/null)

clean:
	rm -rf $(VENV) $(VENV)-oldest $(DEMO) build dist demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
