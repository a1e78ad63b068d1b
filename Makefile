.DEFAULT_GOAL := help
BIN := .venv/bin

.PHONY: help install demo format lint types imports test-fast test check bench faults

help:  ## print these verbs
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-10s %s\n", $$1, $$2}'

.venv/installed: pyproject.toml
	python3 -m venv .venv
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet --editable '.[restructuredtext]' --group dev
	touch $@

install: .venv/installed  ## make the environment in .venv

demo: install  ## set up, ingest the example documents, ask three questions; no Redis, no key
	$(BIN)/refdesk demo

format: install  ## format the code and apply safe fixes
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lint: install  ## check the rules and the format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: install  ## check the types
	$(BIN)/mypy

imports: install  ## check that dependencies point down
	$(BIN)/lint-imports

test-fast: install  ## the tests that need no server and are quick
	$(BIN)/pytest -m "not redis and not slow" -q -n 2 --dist loadfile

test: lint types imports  ## every test, on a real Redis too; what CI calls
	$(BIN)/pytest -n 2 --dist loadfile

check: test  ## everything that must be green before a commit

bench: install  ## measure the broker beside others, in one run; writes docs/benchmarks.md
	$(BIN)/pip install --quiet --group bench
	$(BIN)/python -m benchmarks --full --write

faults: install  ## kill processes for half an hour and count what was lost, into docs/faults.md
	$(BIN)/pytest -m faults
	$(BIN)/python -m tests.faults
