# Two commands do everything on a machine with Python 3.11, pip and make:  make run  ·  make test
# A second call is quick: stamps inside the environments say what is installed. Paths are relative, so that
# the folder may have any name. An environment knows its place: a moved or copied folder gets a new one.

.DEFAULT_GOAL := help
unexport PYTHONDONTWRITEBYTECODE  # where it is set, each of the processes that tests start would compile everything again
.DELETE_ON_ERROR:
.PHONY: help run demo test tests test-long chromium check fmt bench bench-recall peers lowest web types pictures screens docs dist sbom audit lock clean

UV    := sh tools/uv.sh
BIN   := .venv/bin
PLACE := $(shell pwd | cksum | cut -d' ' -f1)
RUN   := .venv/.installed-run
DEV   := .venv/.installed-dev
PEERS := .venv-peers/.installed-peers
LOWEST := .venv-lowest/.installed-lowest
DOCS  := .venv-docs/.installed-docs
NODE  := web/node_modules/.installed
WEB   := src/everthread/http/static/index.html
TYPED := $(foreach folder,src tests benchmarks examples,$(if $(shell find $(folder) -name '*.py' 2>/dev/null | head -1),$(folder)))
# Two more than there are cores: a third of the time a test waits. Eight share one PostgreSQL well.
WORKERS ?= $(shell cores=$$(nproc 2>/dev/null || echo 2); echo $$((cores < 6 ? cores + 2 : 8)))
ARGS  ?=

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' Makefile

run: $(RUN) $(WEB) ## install, then serve at http://127.0.0.1:8123
	$(BIN)/everthread serve --fetch-model $(ARGS)

demo: $(RUN) ## install, then show what everthread keeps that a framework forgets
	$(BIN)/everthread demo $(ARGS)

test: ## the gates, and beside them every test but the long ones
	$(MAKE) --jobs check tests

tests: $(DEV) $(WEB) chromium
	npm --prefix web test --silent
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(ARGS)

test-long: $(DEV) $(WEB) chromium ## the long tests: many kills, outside suites, differential tests, new random examples
	$(BIN)/python -m pytest -m "long or hypothesis" --hypothesis-profile new --timeout 3600 $(ARGS)

chromium:
	sh tools/chromium.sh

check: $(DEV) ## the fast gates: format, lint, types, direction of imports
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/python -m mypy $(TYPED)
	$(BIN)/lint-imports --no-cache

fmt: $(DEV) ## format, and mend what lint can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(PEERS) ## measure beside the peers, in one run
	.venv-peers/bin/python -m benchmarks $(ARGS)

bench-recall: $(DEV) ## measure how much is found again, beside BM25; ARGS="--embedder minilm" with meaning
	$(BIN)/python -m benchmarks.recall $(ARGS)

peers: $(PEERS) ## install the peers into .venv-peers

lowest: $(LOWEST) ## install the lowest versions that pyproject.toml allows into .venv-lowest; make test-long then tests with them

web: $(WEB) ## build the page

types: $(DEV) $(NODE) ## make the page's types again from the service's OpenAPI
	$(BIN)/python tools/openapi.py | npm --prefix web run --silent types > web/src/api/schema.d.ts

pictures: $(DEV) $(WEB) chromium ## make the pictures of the README and the docs again, from the real page
	$(BIN)/python -m tools.pictures
	$(BIN)/python -m tools.screens --docs

screens: $(DEV) $(WEB) chromium ## make a picture of every state of the page, in all widths, themes and languages, into screens/
	$(BIN)/python -m tools.screens $(ARGS)

docs: $(DOCS) ## build the documentation, with the Python reference from the docstrings, into site/
	.venv-docs/bin/zensical build --clean $(ARGS)

sbom: $(NODE) ## list all that is installed, in CycloneDX: dist/sbom.json, and the page's packages in dist/sbom-page.json
	mkdir -p dist
	$(UV) tool run --from cyclonedx-bom==7.5.0 cyclonedx-py requirements requirements/run.txt --output-reproducible -o dist/sbom.json
	npm --prefix web sbom --sbom-format cyclonedx --omit dev > dist/sbom-page.json

audit: ## ask which of the locked packages have known weaknesses
	$(UV) tool run --from pip-audit==2.10.1 pip-audit --requirement requirements/run.txt --require-hashes --disable-pip $(ARGS)

dist: $(DEV) $(WEB) ## build the wheel (with the page) and the sdist into dist/
	rm -rf dist
	$(UV) build --quiet --no-build-isolation --python $(BIN)/python --out-dir dist

# --- environments ----------------------------------------------------------------------------

define install # environment, lock: hashes for all that is fetched, then the project itself on top
	$(UV) pip install --quiet --python $(1)/bin/python --require-hashes --requirement $(2)
	$(UV) pip install --quiet --python $(1)/bin/python --no-deps --no-build-isolation --editable .
	@touch $@
endef

%/.at-$(PLACE):
	rm -rf $*
	$(UV) venv --quiet $*
	@touch $@

$(RUN): requirements/run.txt pyproject.toml .venv/.at-$(PLACE)
	$(call install,.venv,requirements/run.txt)

$(DEV): requirements/dev.txt pyproject.toml .venv/.at-$(PLACE)
	$(call install,.venv,requirements/dev.txt)

$(PEERS): requirements/peers.txt pyproject.toml .venv-peers/.at-$(PLACE)
	$(call install,.venv-peers,requirements/peers.txt)

$(LOWEST): requirements/lowest.txt pyproject.toml .venv-lowest/.at-$(PLACE)
	$(call install,.venv-lowest,requirements/lowest.txt)

$(DOCS): requirements/docs.txt .venv-docs/.at-$(PLACE)
	$(UV) pip install --quiet --python .venv-docs/bin/python --require-hashes --requirement requirements/docs.txt
	@touch $@

$(NODE): web/package.json web/package-lock.json
	NO_UPDATE_NOTIFIER=1 npm --prefix web install --no-save --no-audit --no-fund --loglevel error  # not `ci`: it wants packages of every system in the lock
	@touch $@

$(WEB): $(NODE) $(shell find web/src web/public web/index.html web/*.ts web/tsconfig.json 2>/dev/null)
	NO_UPDATE_NOTIFIER=1 npm --prefix web run --silent build -- --logLevel warn
	@touch $@

# --- locks -----------------------------------------------------------------------------------

# Pins stay as they are until asked: make lock ARGS=--upgrade
COMPILE = $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--no-emit-find-links --custom-compile-command "make lock" $(ARGS)
PROJECT = --extra all pyproject.toml requirements/build.in

lock: ## pin the dependencies again, with hashes, naming no address
	$(COMPILE) requirements/uv.in --output-file requirements/uv.txt
	$(COMPILE) $(PROJECT) --output-file requirements/run.txt
	$(COMPILE) $(PROJECT) requirements/dev.in --constraint requirements/run.txt --output-file requirements/dev.txt
	$(COMPILE) $(PROJECT) requirements/peers.in --output-file requirements/peers.txt
	$(COMPILE) --resolution lowest-direct --extra all --extra adopt --extra deepagents pyproject.toml requirements/lowest.in --output-file requirements/lowest.txt
	$(COMPILE) requirements/docs.in --output-file requirements/docs.txt
	npm --prefix web install --package-lock-only --no-audit --no-fund
	node web/unaddress.mjs

clean: ## remove environments and caches
	rm -rf .cache .venv .venv-docs .venv-lowest .venv-peers .uv site web/node_modules src/everthread/http/static .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
