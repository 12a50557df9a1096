# make run      set up and serve the app on 127.0.0.1:8501
# make test     set up (Chromium included) and run the tests
# make test-full  the same with everything in full: more kills, more draws, the whole demo pool, and make tools-full
# make tools-full  the tools that exports, models and trackers are for, in environments of their own (several GB in .tools)
# make install  set up alone; with LOCKED=no without hashes, for packages of your own such as a CPU-only torch
# make lock     after a change of requirements*.txt: install that and write the lock files anew
# make wheel    build dist/semiprune_studio-*.whl: the package with the app inside, for pip install
# make demo-artifacts  run the demo for real and pack it as assets/demo_project.zip
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
INSTALLED_DEV := $(VENV)/.installed-dev
TEST_ARGS ?=
LOCKED ?= yes
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
ifeq ($(LOCKED),yes)
APP_PACKAGES := --require-hashes -r requirements.lock
DEV_PACKAGES := --require-hashes -r requirements-dev.lock
OUR_PACKAGE := --no-build-isolation --editable .
else
APP_PACKAGES := -r requirements.txt
DEV_PACKAGES := -r requirements-dev.txt
OUR_PACKAGE := --editable .
endif
PYTEST := $(BIN)/python -m pytest
unexport PYTHONDONTWRITEBYTECODE  # tests start hundreds of processes, which would compile everything again

.PHONY: run install lock test test-core test-browser test-full lint tools tools-full clean wheel demo-pool demo-artifacts

run: install
	$(BIN)/streamlit run app.py

install: $(INSTALLED)

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed; '$(PYTHON)' is older. Install it, or: make PYTHON=/path/to/python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(INSTALLED): requirements.lock pyproject.toml | $(VENV)/bin/python
	$(PIP_INSTALL) $(APP_PACKAGES)
	$(PIP_INSTALL) --no-deps $(OUR_PACKAGE)
	@touch $@

$(INSTALLED_DEV): $(INSTALLED) requirements-dev.lock
	$(PIP_INSTALL) $(DEV_PACKAGES)
	@touch $@

lock: | $(VENV)/bin/python
	$(PIP_INSTALL) --upgrade setuptools packaging -r requirements-dev.txt
	$(BIN)/python tests/make_lock.py

tools:
	@bash tests/get_tools.sh

lint: $(INSTALLED_DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --num-workers auto

test: $(INSTALLED_DEV) tools
	$(MAKE) --jobs 2 lint test-core
	$(MAKE) test-browser

test-core:
	$(PYTEST) --ignore tests/browser -n 2 --dist worksteal $(TEST_ARGS)

test-browser:
	$(PYTEST) tests/browser -n 2 --dist loadfile $(TEST_ARGS)

test-full:
	SEMIPRUNE_FULL=1 $(MAKE) test
	$(MAKE) tools-full

tools-full: $(INSTALLED_DEV)
	$(BIN)/python -m tests.tools .tools

wheel: $(INSTALLED)
	rm -rf build
	$(PIP_INSTALL:install=wheel) --no-deps --no-build-isolation --wheel-dir dist .

demo-pool: $(INSTALLED)
	$(BIN)/python assets/make_demo_pool.py

demo-artifacts: $(INSTALLED)
	$(BIN)/python -m semiprune_core.commands.demo_artifacts

clean:
	rm -rf $(VENV) .tools .pytest_cache .ruff_cache
