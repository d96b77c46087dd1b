# Each target does all of its own set-up: a virtual environment in .venv with plain pip.
PYTHON ?= python3
VENV   := .venv
RUN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: demo test slow lint bench clean

demo: $(STAMP)  ## the main job on embedded data
	$(RUN)/mipl demo

test: $(STAMP)  ## all tests but the slow ones, and the doctests
	$(RUN)/python -m pytest

slow: $(STAMP)  ## the slow tests too
	$(RUN)/python -m pytest --slow

lint: $(STAMP)  ## style and types
	$(RUN)/ruff check .
	$(RUN)/ruff format --check .
	$(RUN)/mypy

bench: $(STAMP)  ## every benchmark, one after the other
	@for script in $$(grep -l __main__ benchmarks/*.py); do echo "== $$script"; $(RUN)/python $$script || exit 1; done

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(RUN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev,dask]"
	touch $@

clean:
	rm -rf $(VENV) build dist demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
