.DEFAULT_GOAL := help
BIN := .venv/bin

.PHONY: help install demo format lint types imports static test-fast test test-all coverage produced check clients lock audit wheel chart docs sbom bench patterns faults

help:  ## print the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-10s %s\n", $$1, $$2}'

# Without isolation: the build dependencies of the wheel are locked, too, and not fetched separately.
UV := $(shell command -v uv)
ifeq ($(UV),)
MAKE_ENVIRONMENT := python3 -m venv .venv
INSTALL := $(BIN)/pip install --quiet --no-build-isolation
REPORT = --report .venv/$(1).json
else
MAKE_ENVIRONMENT := $(UV) venv --quiet --allow-existing --python python3 .venv
INSTALL := $(UV) pip install --quiet --python $(BIN)/python --no-build-isolation
endif

# The packages for users.
.venv/runtime: pyproject.toml requirements/build.txt requirements/runtime.txt
	$(MAKE_ENVIRONMENT)
	$(INSTALL) --require-hashes --requirement requirements/build.txt
	$(INSTALL) --require-hashes --requirement requirements/runtime.txt $(call REPORT,runtime)
	$(INSTALL) --no-deps --editable .
	touch $@

# In addition, the developer tools.
.venv/installed: .venv/runtime requirements/dev.txt
	$(INSTALL) --require-hashes --requirement requirements/dev.txt $(call REPORT,dev)
	touch $@

install: .venv/installed  ## create the developer environment in .venv from the lock file

demo: .venv/runtime  ## install for users, ingest the example documents, ask three questions, show a recorded example; without Redis and keys
	$(BIN)/refdesk demo

format: install  ## format the code and apply safe fixes
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lint: install  ## check the linter rules and the format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: install  ## check the types
	$(BIN)/mypy

imports: install  ## check the import rules
	$(BIN)/lint-imports

static: install
	@$(MAKE) --no-print-directory --jobs=3 lint types imports

# Tests start hundreds of commands, which would compile the code each time if the environment
# disabled the bytecode cache.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/pytest --dist worksteal

# Failed tests (exit status 1) are run once more, serially. A test that passes only then depends on the
# speed of the machine: both results are printed, and the test must be fixed.
ALONE = { [ $$? -eq 1 ] && echo "make: running the failed tests again, serially:" && \
	$(BIN)/pytest --last-failed --last-failed-no-failures none -m ""; }

test-fast: install  ## run the quick tests that need no server (about a minute)
	$(PYTEST) -m "not redis and not slow and not long" -q -n 2

test: static  ## run lint, types, imports and every test that is not marked long; CI runs this target
	$(PYTEST) -n 3 || $(ALONE)

# Third-party clients, in a separate folder, because the environment does not contain them.
.clients/installed: Makefile
	mkdir -p .clients
	cd .clients && npm install --no-save --prefix . node@22 openai@7 \
		@modelcontextprotocol/inspector@2 @modelcontextprotocol/conformance@0.1
	python3 -m venv .clients/python
	.clients/python/bin/pip install --quiet 'langchain-openai>=1.7,<2' \
		'llama-index-llms-openai-like>=0.8,<1'
	touch $@

clients: install .clients/installed  ## run third-party clients against a server: OpenAI, LangChain, LlamaIndex, MCP
	$(PYTEST) -q -n 0 -m "" tests/clients

test-all: static  ## run everything that test runs, and the long tests
	$(PYTEST) -n 3 -m "" || $(ALONE)

coverage: install  ## show the line and branch coverage of the quick tests
	$(BIN)/coverage run -m pytest -q -m "not slow and not long"
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

produced: install  ## list the metrics, log events and error codes that no test produces
	rm -rf dist/produced && mkdir -p dist/produced
	-REFDESK_PRODUCED=$(CURDIR)/dist/produced $(PYTEST) -q -n 3
	$(BIN)/python -m tests.produced dist/produced

check: test  ## run everything that must pass before a commit

lock: install  ## update the lock file after a change to pyproject.toml; UPGRADE=1: newest releases
	$(INSTALL) --require-hashes --requirement requirements/lock.txt
	$(BIN)/python -m deploy.supply_chain.lock $(if $(UPGRADE),--upgrade)

audit: install  ## report vulnerable and yanked releases in the lock file
	$(BIN)/python -m deploy.supply_chain.audit

wheel: install  ## build the wheel into dist/
	$(BIN)/python -m hatchling build -t wheel

chart: install  ## write the Helm chart into dist/chart
	$(BIN)/python -m deploy.generate.chart dist/chart/refdesk

docs: install  ## build the documentation site in dist/site
	$(BIN)/python -m deploy.generate.site

SBOM := dist/refdesk.cdx.json

sbom: install  ## write the software bill of materials of the image to dist/
	mkdir -p $(dir $(SBOM))
	$(BIN)/cyclonedx-py requirements requirements/image.txt --pyproject pyproject.toml --mc-type application \
		--spec-version 1.6 --output-format JSON --output-reproducible --validate --output-file $(SBOM)
	$(BIN)/python -m deploy.supply_chain.vendored $(SBOM)

bench: install  ## compare the broker with other systems; writes docs/internal/measurements/benchmarks.md
	$(INSTALL) --require-hashes --requirement requirements/bench.txt
	$(BIN)/python -m benchmarks.speed --full --write

patterns: install  ## measure new regular expressions, and record those that run in linear time
	$(BIN)/python -m tests.patterns.record

faults: install  ## kill processes for half an hour and count lost messages; writes docs/internal/measurements/faults.md
	$(BIN)/pytest -m "" tests/faults
	$(BIN)/python -m tests.faults
