# Each target does all of its own set-up: a virtual environment in .venv with plain pip.
PYTHON ?= python3
VENV   := .venv
RUN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: demo test slow hostile lint docs linkcheck package image bench clean

demo: $(STAMP)  ## the main job on embedded data
	$(RUN)/mipl demo

# One process per core and one thread per process: more threads than cores wait for each other.
PYTEST := OMP_NUM_THREADS=1 $(RUN)/python -m pytest -n auto --dist worksteal

test: $(STAMP)  ## all tests but the slow ones, and the doctests
	$(PYTEST)

slow: $(STAMP)  ## the slow tests too
	$(PYTEST) --slow

hostile: $(STAMP)  ## damaged files, killed saves, forged models, hostile names and paths by the thousand, with counts
	$(PYTEST) --slow -rP tests/hostile

lint: $(STAMP)  ## style and types
	$(RUN)/ruff check .
	$(RUN)/ruff format --check .
	$(RUN)/mypy

# In an environment of its own, with the lowest version of each dependency that pyproject.toml allows.
.PHONY: test-lowest
LOWEST       := .venv-lowest
LOWEST_TESTS := tests/test_lowest_versions.py tests/test_estimators.py tests/test_persistence.py tests/io/test_formats.py \
                tests/cli/test_demo.py tests/bench/analysis tests/bench/store

test-lowest:  ## methods, files, the demo and the bench's store with the lowest versions
	test -x $(LOWEST)/bin/python || $(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet --requirement constraints-lowest.txt --editable .
	OMP_NUM_THREADS=1 $(LOWEST)/bin/python -m pytest -q $(LOWEST_TESTS)

docs: $(VENV)/.docs  ## the site, in docs/_build/html; needs no network and allows no warning
	rm -rf docs/generated
	OMP_NUM_THREADS=1 $(RUN)/python -m sphinx -W --keep-going -n -q -b html docs docs/_build/html
	$(RUN)/python .ci/site_links.py docs/_build/html
	@echo "docs/_build/html/index.html"

linkcheck: $(VENV)/.docs  ## the addresses of other sites in the documentation; needs a network
	$(RUN)/python -m sphinx -b linkcheck -D plot_gallery=0 -q docs docs/_build/linkcheck

package: $(STAMP)  ## sdist and wheel in dist/, tried in an empty environment
	rm -rf dist build
	$(RUN)/python -m build --outdir dist .
	$(PYTHON) -m venv build/package
	build/package/bin/python -m pip install --quiet --constraint constraints.txt dist/*.whl
	cd build/package && bin/python $(CURDIR)/.ci/smoke.py
	build/package/bin/python -m pip install --quiet --no-deps --force-reinstall dist/*.tar.gz
	cd build/package && bin/mipl --version

image:  ## the Docker image, and the demo in it; needs a Docker daemon
	docker build --tag mipl .
	docker run --rm mipl

# What things cost, in minutes each; those that read raw data run where MIPL_DATA is set.
BENCHES := "bags" "bench_overhead" "pll scale solvers" "flagship_speed predict"
ifdef MIPL_DATA
BENCHES += "datasets" "pll lost" "mil cost" "gp_engine"
endif

bench: $(STAMP)  ## the benchmarks, one after the other
	@for words in $(BENCHES); do \
	  set -- $$words; script=$$1; shift; echo "== $$script $$*"; \
	  $(RUN)/python benchmarks/$$script.py "$$@" || exit 1; \
	done

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(RUN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev,dask]"
	touch $@

$(VENV)/.docs: $(STAMP)
	$(RUN)/python -m pip install --quiet --constraint constraints.txt --editable ".[docs]"
	touch $@

clean:
	rm -rf docs/_build docs/generated docs/auto_examples docs/sg_execution_times.rst
	rm -rf $(VENV) $(LOWEST) build dist demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
