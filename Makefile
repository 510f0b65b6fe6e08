# make train   the main job, from nothing to predictions        make test   lint and all tests
# make bench   the cost of the loop                             make draw   the README's picture
PYTHON ?= python3
VENV := .venv
READY := $(VENV)/.ready
RUN := $(VENV)/bin/python
TEXTS ?= "Return the cosine of x in radians." "Decode a base64 encoded bytes-like object." "Wait until the thread terminates."

.PHONY: train test lint bench draw wheel

train: $(READY)
	@$(RUN) examples/main_job.py $(TEXTS)

test: lint
	$(RUN) -m pytest

lint: $(READY)
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy

bench: $(READY)
	$(RUN) benchmarks/loop.py

draw: $(READY)
	$(RUN) examples/nested_test.py --draw docs/onion.svg

wheel: $(READY)
	$(RUN) -m build --wheel --outdir dist .

# One installation serves every target; it is made anew when the dependencies change.
$(READY): setup.cfg pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet --disable-pip-version-check --editable '.[cpu,dev]'
	touch $(READY)
