# What one does with Windlass. `make run` and `make test` do all set-up themselves.

PYTHON ?= python3
BIN := .venv/bin
SEEDS ?= 300
ROUNDS ?= 50
MESSAGES ?= 10000
SHARE ?= 0.1
RUNS ?= 30
TESTS ?= --page sample
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

# The tests start hundreds of processes: compiled modules are kept, or each of them would compile everything anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup run test page check shuffle sim crash mutants bench docs lock clean

run: .venv/.runtime  ## start the server: SQLite, a key from the environment or the built-in demo
	$(BIN)/windlass serve

setup: .venv/.dev  ## make .venv with .venv/bin/windlass, and what tests need

test: check  ## what must hold: checks, unit tests, real servers, 300 simulated schedules, a sample of the page's tests
	$(BIN)/python -m pytest -n auto --dist worksteal --page sample

page: .venv/.dev  ## every test of the page, in a real browser, about a minute and a half
	$(BIN)/python -m pytest -n auto --dist worksteal tests/page

check: .venv/.dev  ## style and types, under a minute
	$(BIN)/ruff check windlass tests bench examples
	$(BIN)/ruff format --check --quiet windlass tests bench examples
	$(BIN)/mypy -p windlass -p bench

shuffle: .venv/.dev  ## the tests of `make test` RUNS times, each time in another order; says which orders failed
	$(BIN)/python -m tests.shuffle --runs $(RUNS) -- $(TESTS)

sim: .venv/.dev  ## SEEDS=n schedules over the real engine in virtual time
	$(BIN)/python -m windlass.testing.sim --seeds $(SEEDS)

crash: .venv/.dev  ## kill -9 a real server under load ROUNDS times and compare with what clients were told; workers and mailboxes too
	$(BIN)/python -m tests.crash --rounds $(ROUNDS)
	$(BIN)/python -m tests.crash --rounds $(ROUNDS) --placement process
	$(BIN)/python -m tests.crash.workers --rounds $(ROUNDS)
	$(BIN)/python -m tests.crash.mailbox --messages $(MESSAGES)

bench: .venv/.dev  ## what it costs, beside what a bare loop costs: writes docs/bench.md, about seven minutes
	$(BIN)/python -m bench --write docs/bench.md

mutants: .venv/.dev  ## change core/ and journal/ in small ways, SHARE=1 for all of them, and see whether a test notices
	$(BIN)/python -m tests.mutation --share $(SHARE)

docs: .venv/.dev  ## write docs/http.md from the OpenAPI document
	$(BIN)/python -m windlass.server.reference > docs/http.md

lock:  ## pin what requirements*.in ask for, with hashes
	$(PIP) install pip-tools
	for name in requirements-build requirements requirements-dev; do \
	  $(BIN)/pip-compile --quiet --generate-hashes --allow-unsafe --strip-extras --no-header --upgrade \
	    --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --output-file $$name.txt $$name.in; done

clean:
	rm -rf .venv build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .mutants.jsonl

.venv/.runtime: requirements-build.txt requirements.txt pyproject.toml
	@echo "Setting up .venv (once; about a minute) ..."
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Windlass needs Python 3.11 or newer; say which one with: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(PIP) install --require-hashes -r requirements-build.txt -r requirements.txt
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

.venv/.dev: .venv/.runtime requirements-dev.txt
	@echo "Setting up what tests need ..."
	@$(PIP) install --require-hashes -r requirements-dev.txt
	@touch $@
