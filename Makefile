# Everything here writes below this directory only and needs no root, except the marked tests of test-all.
SHELL := /bin/bash
VENV ?= .venv
PYTHON ?=
PYTEST_ARGS ?=
ARGS ?=
CACHE := $(CURDIR)/.cache
unexport PYTHONDONTWRITEBYTECODE # without bytecode every run would compile all of it again: 0.15 s
SEARCH := --hypothesis-profile=search # property tests try new examples; `make test` tries the same few every time
PRIVILEGED := root or firewall or sshd or compiler or container
LEFT_OUT ?= $(PRIVILEGED)# by test-unprivileged; .ci/run leaves out more
MARKED := slow or browser or $(PRIVILEGED)
# For tools of ours; `check` gets the caller's own TMPDIR, because the free space there is one of the things it judges.
TOOLS := export XDG_CACHE_HOME="$(CACHE)" PIP_CACHE_DIR="$(CACHE)/pip" TMPDIR="$(CACHE)/tmp" PYTHON="$(PYTHON)"; \
	unset PYTHONPATH PYTHONHOME; mkdir -p "$$TMPDIR" &&

.PHONY: help check test test-all test-unprivileged test-privileged lint format types messages docs docs-check site pyz bench clean
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-17s %s\n", $$1, $$2}' Makefile

check: $(VENV)/ready ## set everything up and report on this host (ARGS="--lang zh")
	@XDG_CACHE_HOME="$(CACHE)" $(VENV)/bin/envtune check $(ARGS); code=$$?; \
	case $$code in 0|1|3) ;; *) exit $$code ;; esac  # a report was printed: what it found is no failure of make

test: $(VENV)/ready-dev ## set everything up and run the fast tests
	@$(TOOLS) $(VENV)/bin/python -m pytest -n auto --dist worksteal -m "not ($(MARKED))" $(PYTEST_ARGS)

test-all: test-unprivileged test-privileged ## every test; skips what needs something that is missing

test-unprivileged: $(VENV)/ready-dev ## tests that need no root, firewall, compiler or sshd
	@$(TOOLS) $(VENV)/bin/python -m pytest $(SEARCH) -n auto --dist worksteal -m "not ($(LEFT_OUT))" $(PYTEST_ARGS)

test-privileged: $(VENV)/ready-dev ## tests that need one of these, one after the other
	@$(TOOLS) $(VENV)/bin/python -m pytest $(SEARCH) -m "$(PRIVILEGED)" $(PYTEST_ARGS)

lint: $(VENV)/ready-dev ## ruff, and whether the code is formatted
	@$(TOOLS) $(VENV)/bin/ruff check . && $(VENV)/bin/ruff format --check .

format: $(VENV)/ready-dev ## format the code
	@$(TOOLS) $(VENV)/bin/ruff check --fix . && $(VENV)/bin/ruff format .

types: $(VENV)/ready-dev ## mypy --strict
	@$(TOOLS) $(VENV)/bin/mypy --cache-dir "$(CACHE)/mypy"

docs: $(VENV)/ready-dev ## generate the pages and schemas of the catalog
	@$(TOOLS) $(VENV)/bin/python docs/generate.py && $(VENV)/bin/python docs/readme_output.py && \
	$(VENV)/bin/python docs/reference.py && \
	$(VENV)/bin/python docs/pictures.py && $(VENV)/bin/python scripts/manual.py

messages: $(VENV)/ready-dev ## collect the messages of the code and compile the Chinese catalog
	@$(TOOLS) $(VENV)/bin/python scripts/messages.py

docs-check: $(VENV)/ready-dev ## check that generated pages are up to date
	@$(TOOLS) $(VENV)/bin/python docs/generate.py --check && $(VENV)/bin/python docs/readme_output.py --check && \
	$(VENV)/bin/python docs/reference.py --check && \
	$(VENV)/bin/python docs/pictures.py --check && $(VENV)/bin/python scripts/manual.py --check

site: ## build/site: the documentation as a site with search, in both languages
	@$(TOOLS) scripts/setup-venv .venv-site "$$(scripts/find-python)" site && .venv-site/bin/python docs/site.py

pyz: ## dist/envtune.pyz: one file for hosts on which nothing can be installed
	@$(TOOLS) python=$$(scripts/find-python oldest) && "$$python" scripts/make_pyz.py dist/envtune.pyz

bench: $(VENV)/ready ## what a check costs, compared with other tools (docs/benchmarks.md)
	@$(TOOLS) $(VENV)/bin/python benchmarks/check_cost.py $(ARGS)

clean: ## remove what make wrote
	rm -rf .venv* .cache build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/ready: pyproject.toml hatch_build.py
	@$(TOOLS) scripts/setup-venv "$(VENV)" "$$(scripts/find-python)" && touch "$@"

$(VENV)/ready-dev: pyproject.toml hatch_build.py
	@$(TOOLS) scripts/setup-venv "$(VENV)" "$$(scripts/find-python)" dev && touch "$@" "$(VENV)/ready"
