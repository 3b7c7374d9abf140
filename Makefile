# Every target sets up what it needs in .venv and is quick when nothing has changed.
PYTHON ?= python3
PIP = .venv/bin/python -m pip --disable-pip-version-check -q

.PHONY: demo setup test test-long lint bench lock clean

demo: .venv/.core
	.venv/bin/unblur demo --out demo-output

setup: .venv/.all

test: .venv/.all
	@tools/system-packages
	.venv/bin/python -m pytest -q -n 2 --dist loadfile

test-long: .venv/.all
	UNBLUR_TESTS=long .venv/bin/python -m pytest -q

lint: .venv/.all
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy

bench: .venv/.all
	.venv/bin/python -m benchmarks

lock: .venv/.all
	tools/lock

clean:
	rm -rf .venv demo-output

.venv/bin/python:
	$(PYTHON) -m venv .venv

# The core alone: what a user of the demo needs.
.venv/.core: .venv/bin/python pyproject.toml requirements.lock
	$(PIP) install -c requirements.lock -e .
	@touch $@

# Everything the tests and the linters need.
.venv/.all: .venv/.core
	$(PIP) install -c requirements.lock -e '.[cpsat,dask,nafld,postgres,pyspark,test,web]'
	@touch $@
