.DEFAULT_GOAL := help
BIN := .venv/bin

.PHONY: help install demo format lint types imports static test-fast test test-all coverage produced check clients lock audit wheel chart docs sbom bench patterns faults

help:  ## print these verbs
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-10s %s\n", $$1, $$2}'

# Without isolation: what builds a wheel is locked too, and not fetched beside the lock.
UV := $(shell command -v uv)
ifeq ($(UV),)
MAKE_ENVIRONMENT := python3 -m venv .venv
INSTALL := $(BIN)/pip install --quiet --no-build-isolation
REPORT = --report .venv/$(1).json
else
MAKE_ENVIRONMENT := $(UV) venv --quiet --allow-existing --python python3 .venv
INSTALL := $(UV) pip install --quiet --python $(BIN)/python --no-build-isolation
endif

# What users need.
.venv/runtime: pyproject.toml requirements/build.txt requirements/runtime.txt
	$(MAKE_ENVIRONMENT)
	$(INSTALL) --require-hashes --requirement requirements/build.txt
	$(INSTALL) --require-hashes --requirement requirements/runtime.txt $(call REPORT,runtime)
	$(INSTALL) --no-deps --editable .
	touch $@

# The tools of developers beside it.
.venv/installed: .venv/runtime requirements/dev.txt
	$(INSTALL) --require-hashes --requirement requirements/dev.txt $(call REPORT,dev)
	touch $@

install: .venv/installed  ## make the environment of developers in .venv, from the lock

demo: .venv/runtime  ## set up for users, ingest the example documents, ask three questions, show a recorded example; no Redis, no key
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

static: install
	@$(MAKE) --no-print-directory --jobs=3 lint types imports

# Tests start hundreds of commands, which compile the code each time where the environment forbids
# to store what is compiled.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/pytest --dist worksteal

# What failed (exit status 1) is run once more with the machine to itself. A test that passes only then
# depends on the speed of the machine: both runs are printed, and it is to be mended.
ALONE = { [ $$? -eq 1 ] && echo "make: what failed is run again, alone:" && \
	$(BIN)/pytest --last-failed --last-failed-no-failures none -m ""; }

test-fast: install  ## the tests that need no server and are quick: a minute
	$(PYTEST) -m "not redis and not slow and not long" -q -n 2

test: static  ## lint, types, imports and every test that is not long; what CI calls
	$(PYTEST) -n 3 || $(ALONE)

# Clients that others publish, in a folder of their own: the environment has none of them.
.clients/installed: Makefile
	mkdir -p .clients
	cd .clients && npm install --no-save --prefix . node@22 openai@7 \
		@modelcontextprotocol/inspector@2 @modelcontextprotocol/conformance@0.1
	python3 -m venv .clients/python
	.clients/python/bin/pip install --quiet 'langchain-openai>=1.7,<2' \
		'llama-index-llms-openai-like>=0.8,<1'
	touch $@

clients: install .clients/installed  ## ask a desk with clients of others: OpenAI, LangChain, LlamaIndex, MCP
	$(PYTEST) -q -n 0 -m "" tests/clients

test-all: static  ## all of that and the long tests: every place to die, every order, both Redis
	$(PYTEST) -n 3 -m "" || $(ALONE)

coverage: install  ## the share of lines and branches that the tests of one process run
	$(BIN)/coverage run -m pytest -q -m "not slow and not long"
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

produced: install  ## the metrics, log events and error codes that no test produces
	rm -rf dist/produced && mkdir -p dist/produced
	-REFDESK_PRODUCED=$(CURDIR)/dist/produced $(PYTEST) -q -n 3
	$(BIN)/python -m tests.produced dist/produced

check: test  ## everything that must be green before a commit

lock: install  ## lock the dependencies anew after a change of pyproject.toml; UPGRADE=1: the newest
	$(INSTALL) --require-hashes --requirement requirements/lock.txt
	$(BIN)/python -m deploy.supply_chain.lock $(if $(UPGRADE),--upgrade)

audit: install  ## ask the package index for vulnerable and yanked releases of the lock
	$(BIN)/python -m deploy.supply_chain.audit

wheel: install  ## build the wheel into dist/
	$(BIN)/python -m hatchling build -t wheel

chart: install  ## write the Helm chart into dist/chart
	$(BIN)/python -m deploy.generate.chart dist/chart/refdesk

docs: install  ## build the site of the documentation into dist/site
	$(BIN)/python -m deploy.generate.site

SBOM := dist/refdesk.cdx.json

sbom: install  ## write the bill of materials of the image into dist/
	mkdir -p $(dir $(SBOM))
	$(BIN)/cyclonedx-py requirements requirements/image.txt --pyproject pyproject.toml --mc-type application \
		--spec-version 1.6 --output-format JSON --output-reproducible --validate --output-file $(SBOM)
	$(BIN)/python -m deploy.supply_chain.vendored $(SBOM)

bench: install  ## measure the broker beside others, in one run; writes docs/internal/measurements/benchmarks.md
	$(INSTALL) --require-hashes --requirement requirements/bench.txt
	$(BIN)/python -m benchmarks.speed --full --write

patterns: install  ## measure the regular expressions that are new, and record them if they are linear
	$(BIN)/python -m tests.patterns.record

faults: install  ## kill processes for half an hour and count what was lost, into docs/internal/measurements/faults.md
	$(BIN)/pytest -m "" tests/faults
	$(BIN)/python -m tests.faults
