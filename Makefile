# Every target installs what it needs into .venv, from nothing but a Python (3.11 or newer) and its pip.
#   make demo | test | test-all | check | format
#   make cov | conformance | mcp-peers | ui-conformance | frameworks | corpus
#   make test-external | test-long | test-mcp1 | test-pythons | test-hostile    the parts of test-all
#   make docs | docs-serve | pictures | reference
#   make bench | bench-gate | figures | compare | soak
#   make dist | dist-test | audit | release-check | setup | clean
#   PYTHON=/path/to/python   the interpreter to create .venv with
#   ARGS="-k name"           further arguments for the command that runs
#   WORKERS=6                how many processes share the tests; 0 for a single process

MAKEFLAGS += --no-print-directory

VENV ?= .venv
BIN := $(VENV)/bin
PYTHONS := python3.14 python3.13 python3.12 python3.11 python3 python
SUITABLE := import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))
VERSION := import sys; print("%d.%d" % sys.version_info[:2])
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
export NO_MKDOCS_2_WARNING := 1
# Tests start Python hundreds of times: without stored bytecode each start compiles the package.
export PYTHONDONTWRITEBYTECODE :=
DEMO ?= -m examples.demo
WORKERS ?= 4

# Stamps: what .venv holds. `test` holds all that `run` does, and `dev` all that `test` does.
RUN := $(VENV)/.stamp-run
TEST := $(VENV)/.stamp-test
DEV := $(VENV)/.stamp-dev
CORPUS := .venv-corpus/.stamp
# A mock of the providers' HTTP APIs that is not ours; it runs on the Node that pyright brings.
MOCK := .aimock/.stamp-1.43.0
# MCP servers and clients that are not ours, in environments of their own; and the other line of
# the protocol's SDK.
PEERS := .mcp-peers/.stamp-2
MCP1 := .venv-mcp1/.stamp
# Clients of the protocols of user interfaces that are not ours, some with a Node of their own.
UI_PEERS := .ui-peers/.stamp-3
# Other agent frameworks, whose agents call our tools, each in an environment of its own.
FRAMEWORKS := .frameworks/.stamp-1

PYTEST := -m pytest --numprocesses $(WORKERS) --dist worksteal
# $(call pytest,python,arguments): with AGAIN=1 the tests that fail run a second time.
FAILED := --last-failed --last-failed-no-failures none
pytest = $(1) $(PYTEST) $(2) $(if $(AGAIN),|| $(1) $(PYTEST) $(2) $(FAILED))
TEST_PARTS := test-external test-long test-mcp1 test-pythons test-hostile
.PHONY: help setup demo test test-all $(TEST_PARTS) programs conformance mcp-peers ui-conformance frameworks
.PHONY: cov corpus check dist dist-test audit release-check
.PHONY: format docs docs-serve pictures reference bench bench-gate figures compare soak clean

help:
	@sed -n 's/^#   //p' Makefile

# Everything that the tests and the checks need.
setup: $(DEV) $(MOCK) $(PEERS) $(UI_PEERS) $(FRAMEWORKS)

demo: $(RUN)
	@$(BIN)/python $(DEMO) $(ARGS)

# The suite, with nothing but what pip installs.
test: $(TEST)
	@$(call pytest,$(BIN)/python,$(ARGS))

# All that `make test` leaves out. It runs thousands of tests of processes and time on several
# interpreters at once, so each part runs the tests that failed in it once more.
test-all: programs setup
	@set -e; for part in test-external test-long conformance ui-conformance test-mcp1 test-pythons \
	  test-hostile; do echo "== $$part"; begun=$$(date +%s); $(MAKE) $$part ARGS= AGAIN=1; \
	  echo "== $$part took $$(($$(date +%s) - begun)) s"; done

# The tests with other programs, and the slow ones; a skip has to be in tests/expected_skips.txt.
test-external: $(DEV) $(MOCK) $(PEERS) $(UI_PEERS) $(FRAMEWORKS)
	@$(call pytest,$(BIN)/python,-m "slow or external" --fail-on-unexpected-skip $(ARGS))

# Property tests with many examples, and generated corpora at full size.
test-long: $(TEST)
	@export AGENTS_TOOLS_TESTS=full; $(call pytest,$(BIN)/python,-m "(hypothesis or scaled) and not \
	  external" --timeout=1800 $(ARGS))

# The tests of MCP with the previous line of the SDK.
test-mcp1: $(MCP1)
	@$(call pytest,.venv-mcp1/bin/python,tests/mcp tests/cli/test_serve.py tests/cli/test_mcp.py $(ARGS))

# The suite on every other Python from 3.11 on that is found on PATH or under pyenv. Where
# `make setup` has installed uv, it makes their environments, in a tenth of the time.
test-pythons: $(BIN)/python
	@seen=$$($(BIN)/python -c '$(VERSION)'); \
	for python in $(PYTHONS) "$${PYENV_ROOT:-$$HOME/.pyenv}"/versions/*/bin/python; do \
	  "$$python" -c '$(SUITABLE)' 2>/dev/null || continue; \
	  version=$$("$$python" -c '$(VERSION)'); \
	  case " $$seen " in *" $$version "*) continue;; esac; seen="$$seen $$version"; \
	  echo "== Python $$version"; \
	  uv="PIP=env VIRTUAL_ENV=.venv-$$version UV_COMPILE_BYTECODE=1 $(BIN)/uv pip --quiet"; \
	  test -x $(BIN)/uv || uv=; \
	  $(MAKE) test PYTHON="$$python" VENV=".venv-$$version" $${uv:+"$$uv"} || exit 1; \
	done

# Some of the suite in an empty environment, with SIGINT ignored, on a busy machine.
test-hostile: $(TEST)
	@$(BIN)/python -m tests.hostile_environment $(ARGS)

# The Debian packages that tests need; AGENTS_TOOLS_MISSING names those that this machine lacks.
programs:
	@.ci/programs

# The official suites of the protocol, against our server and our client, on both wires.
conformance: $(DEV) $(PEERS)
	@$(BIN)/python -m tests.conformance.mcp.run $(ARGS)

# Real MCP clients and servers: the tests with them, as a page of the docs.
mcp-peers: $(DEV) $(PEERS)
	@$(BIN)/python -m tests.mcp.table $(ARGS)

# Real clients of AG-UI and of the Vercel AI SDK, against our endpoints.
ui-conformance: $(DEV) $(UI_PEERS)
	@$(BIN)/python -W error -m tests.conformance.ui.run $(ARGS)

# Our tools and those of the frameworks themselves, in agents of twelve frameworks.
frameworks: $(DEV) $(FRAMEWORKS)
	@$(BIN)/python -m tests.frameworks.run $(ARGS)

# The lines and branches that no test without other programs reaches, in subprocesses too.
cov: $(TEST)
	@$(BIN)/python -m coverage erase
	@$(BIN)/python -m coverage run $(PYTEST) -m "not external" $(ARGS)
	@$(BIN)/python -m coverage combine --quiet
	@$(BIN)/python -m coverage report

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

# Fuzzing, kills, leaks, faults and races at length: about twelve minutes.
soak: programs $(DEV)
	@$(BIN)/python -m tests.soak.report

# What the comparison rests on, measured again with the versions that are installed: the calls of
# the data sets, tool search, code mode, other frameworks and the protocol's suites.
compare: $(DEV) $(PEERS) $(FRAMEWORKS)
	@$(BIN)/python -m tests.frameworks.run --write docs/reference/frameworks-table.md
	@$(BIN)/python -m tests.conformance.mcp.run --peers --write
	@$(BIN)/python -m tests.mcp.table --write
	@$(BIN)/python -m tests.benchmarks.page --only bfcl search code-mode code-mode-bfcl mcp-stress frameworks

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

# Everything that the other targets made, environments included.
clean:
	rm -rf .venv .venv-* .aimock .mcp-peers .ui-peers .frameworks .bench site dist build htmlcov .coverage .coverage.*
	rm -rf .pytest_cache .ruff_cache .mypy_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(DEV): pyproject.toml | $(BIN)/python
	@echo "Installing the package with everything for development (once) …"
	@$(PIP) install 'pip>=25.1' # the first that reads dependency groups
	@$(PIP) install --editable '.[all]' --group dev
	@touch $(RUN) $(TEST) $@

$(TEST): pyproject.toml | $(BIN)/python
	@echo "Installing the package with what its tests need (once) …"
	@$(PIP) install 'pip>=25.1' # the first that reads dependency groups
	@$(PIP) install --editable '.[all]' --group test
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
