# Every target sets up what it needs in .venv, from nothing but a Python (3.11 or newer) and its pip.
#   make demo | setup | test | test-mcp1 | conformance | ui-conformance | frameworks | check
#   make docs | pictures | reference | cov | mutants | soak
#   make bench | bench-gate | figures | corpus | clean
#   make dist | dist-test | audit | release-check
#   PYTHON=/path/to/python   the interpreter to build .venv with
#   ARGS="-k name"           further arguments for the command that runs
#   WORKERS=5                how many processes share the tests; 0 for none beside the one

MAKEFLAGS += --no-print-directory

VENV ?= .venv
BIN := $(VENV)/bin
PYTHONS := python3.14 python3.13 python3.12 python3.11 python3 python
SUITABLE := import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
export NO_MKDOCS_2_WARNING := 1
DEMO ?= -m examples.demo
WORKERS ?= 3

# Stamps: what .venv holds. `dev` holds all that `run` does.
RUN := $(VENV)/.stamp-run
DEV := $(VENV)/.stamp-dev
CORPUS := .venv-corpus/.stamp
# A mock of the providers' HTTP APIs that is not ours; it runs on the Node that pyright brings.
MOCK := .aimock/.stamp-1.43.0
# MCP servers and clients that are not ours, in environments of their own; and the other line of
# the protocol's SDK.
PEERS := .mcp-peers/.stamp-1
MCP1 := .venv-mcp1/.stamp
# Clients of the protocols of user interfaces that are not ours, some with a Node of their own.
UI_PEERS := .ui-peers/.stamp-1
# Other agent frameworks, whose agents call our tools, each in an environment of its own.
FRAMEWORKS := .frameworks/.stamp-1

PHONY_TESTS := test test-all test-long test-mcp1 conformance ui-conformance frameworks
.PHONY: help setup demo $(PHONY_TESTS) cov corpus check
.PHONY: dist dist-test audit release-check soak mutants
.PHONY: format docs docs-serve pictures reference bench bench-gate figures clean

help:
	@sed -n 's/^#   //p' Makefile

# Everything that the tests and the checks need.
setup: $(DEV) $(MOCK) $(PEERS) $(UI_PEERS) $(FRAMEWORKS)

demo: $(RUN)
	@$(BIN)/python $(DEMO) $(ARGS)

test: $(DEV) $(MOCK) $(PEERS) $(UI_PEERS) $(FRAMEWORKS)
	@$(BIN)/python -m pytest --numprocesses $(WORKERS) --dist worksteal $(ARGS)

# What concerns MCP, with the line of the SDK before the newest one.
test-mcp1: $(MCP1)
	@.venv-mcp1/bin/python -m pytest tests/mcp --ignore tests/mcp/test_real_servers.py \
	  --ignore tests/mcp/test_real_clients.py $(ARGS)

# The official suites of the protocol, against our server and our client, on both wires.
conformance: $(DEV) $(PEERS)
	@$(BIN)/python -m tests.conformance.mcp.run $(ARGS)

# Real clients of AG-UI and of the Vercel AI SDK, against our endpoints.
ui-conformance: $(DEV) $(UI_PEERS)
	@$(BIN)/python -m tests.conformance.ui.run $(ARGS)

# Our tools and those that the frameworks make themselves, in agents of twelve frameworks.
frameworks: $(DEV) $(FRAMEWORKS)
	@$(BIN)/python -m tests.frameworks.run $(ARGS)

# The suite on every Python from 3.11 on that is found on PATH or under pyenv.
test-all:
	@seen=; for python in $(PYTHONS) "$${PYENV_ROOT:-$$HOME/.pyenv}"/versions/*/bin/python; do \
	  "$$python" -c '$(SUITABLE)' 2>/dev/null || continue; \
	  version=$$("$$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
	  case " $$seen " in *" $$version "*) continue;; esac; seen="$$seen $$version"; \
	  echo "== Python $$version"; \
	  $(MAKE) test PYTHON="$$python" VENV=".venv-$$version" || exit 1; \
	done; test -n "$$seen" || { echo "No Python 3.11 or newer was found." >&2; exit 1; }

cov: $(DEV) $(MOCK) $(PEERS) $(UI_PEERS) $(FRAMEWORKS)
	@$(BIN)/python -m coverage run -m pytest $(ARGS)
	@$(BIN)/python -m coverage report

# The suite with made-up corpora at full size and property tests with many more examples.
test-long: $(DEV) $(MOCK) $(PEERS) $(UI_PEERS) $(FRAMEWORKS)
	@AGENTS_TOOLS_CORPUS=full $(BIN)/python -m pytest --hypothesis-profile=long --timeout=1800 $(ARGS)

# The functions of many packages as tools, in an environment that holds those packages.
corpus: $(CORPUS)
	@.venv-corpus/bin/python -m tests.corpus.run $(ARGS)

check: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --warnings
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/mkdocs build --strict

format: $(DEV)
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

docs: $(DEV)
	$(BIN)/mkdocs build --strict

docs-serve: $(DEV)
	$(BIN)/mkdocs serve

bench: $(DEV)
	@$(BIN)/python -m tests.benchmarks $(ARGS)

# Hot paths beside what has been accepted, as ratios and with slack: half a minute.
bench-gate: $(DEV)
	@$(BIN)/python -m tests.benchmarks.gate $(ARGS)

# All figures of docs/performance.md anew: three quarters of an hour, best on a quiet machine.
figures: $(DEV) $(FRAMEWORKS)
	@$(BIN)/python -m tests.benchmarks.page $(ARGS)

# The pictures and the generated pages of the docs anew.
pictures: $(DEV)
	@$(BIN)/python -m tools.pictures $(ARGS)

reference: $(DEV)
	@$(BIN)/python -m tools.reference
	@$(BIN)/python -m tests.requirements --write

# What is published: made twice and compared, looked at, and installed on every Python that is
# found, with each extra alone; the oldest versions that are allowed; licences and known faults.
dist: $(DEV)
	@$(BIN)/python -m tests.release build
	@$(BIN)/python -m tests.release check

dist-test: $(DEV)
	@$(BIN)/python -m tests.release install $(ARGS)

audit: $(DEV)
	@$(BIN)/python -m tests.release audit

release-check: $(DEV)
	@$(BIN)/python -m tests.release all

# What looks for broken promises: about ten minutes; ARGS="--minutes 60" for longer.
soak: $(DEV)
	@$(BIN)/python -m tests.soak $(ARGS)

# Faults put into the code one by one, to see whether a test notices: minutes for each module.
mutants: $(DEV)
	@$(BIN)/python -m tests.mutation $(or $(ARGS),--module agents_tools._strict --module agents_tools.loop --sample 40)

# Everything that the other targets made, environments included.
clean:
	rm -rf .venv .venv-* .aimock .mcp-peers .ui-peers .frameworks .bench site dist build htmlcov .coverage .coverage.*
	rm -rf .pytest_cache .ruff_cache .mypy_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(DEV): pyproject.toml | $(BIN)/python
	@echo "Installing the package with everything for development (once) …"
	@$(PIP) install 'pip>=25.1' # the first that reads dependency groups
	@$(PIP) install --editable '.[all]' --group dev
	@touch $(RUN) $@

$(RUN): pyproject.toml | $(BIN)/python
	@echo "Installing the package (once) …"
	@$(PIP) install --editable '.[cli]'
	@touch $@

$(MOCK): | $(DEV)
	@echo "Installing the mock server (once) …"
	@mkdir -p .aimock
	@$(BIN)/python -m tests.conformance.install .aimock @copilotkit/aimock@1.43.0
	@touch $@

$(PEERS): | $(DEV)
	@echo "Installing MCP servers and clients to test against (once) …"
	@$(BIN)/python -m tests.conformance.mcp.install
	@$(BIN)/python -m tests.mcp.install
	@mkdir -p $(@D) && touch $@

$(UI_PEERS): | $(DEV)
	@echo "Installing clients of user interfaces to test against (once) …"
	@$(BIN)/python -m tests.conformance.ui.install
	@mkdir -p $(@D) && touch $@

$(FRAMEWORKS): tests/frameworks/requirements.json | $(DEV)
	@echo "Installing other agent frameworks to test in (once) …"
	@$(BIN)/python -m tests.frameworks.run --only-make
	@mkdir -p $(@D) && touch $@

$(MCP1): pyproject.toml
	@$(MAKE) VENV=.venv-mcp1 .venv-mcp1/bin/python
	@echo "Installing the package beside the line 1.x of mcp (once) …"
	@.venv-mcp1/bin/python -m pip --disable-pip-version-check --quiet install 'pip>=25.1'
	@.venv-mcp1/bin/python -m pip --disable-pip-version-check --quiet install \
	  --editable '.[cli,mcp]' --group test 'mcp<2'
	@touch $@

$(CORPUS): pyproject.toml tests/corpus/requirements.txt
	@$(MAKE) VENV=.venv-corpus .venv-corpus/bin/python
	@echo "Installing the packages of the corpus (once) …"
	@.venv-corpus/bin/python -m pip --disable-pip-version-check --quiet install \
	  --editable . --requirement tests/corpus/requirements.txt
	@touch $@

$(BIN)/python:
	@for python in $(or $(PYTHON),$(PYTHONS)); do \
	  "$$python" -c '$(SUITABLE)' 2>/dev/null || continue; \
	  echo "Making $(VENV) with $$("$$python" --version) …"; \
	  "$$python" -m venv --clear $(VENV) && exit 0; \
	  rm -rf $(VENV); exit 1; \
	done; \
	echo "agents_tools needs Python 3.11 or newer with venv and pip; none of '$(or $(PYTHON),$(PYTHONS))' is." >&2; \
	echo "Install one, or name it: make PYTHON=/path/to/python3.12 …" >&2; \
	exit 1
