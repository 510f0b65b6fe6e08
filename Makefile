# make train   the main job, from nothing to predictions        make test   lint and all tests
# make bench   the cost of the loop                             make draw   the README's picture
# make parity  onion beside transformers, sentence-transformers and PaddleNLP: a table. They go into environments of their own
#              (3 GB) in ONION_PARITY, by default onion-parity in the user's cache
# make sst2    one pass over SST-2 (67,349 sentences); DATA is a folder with its train.tsv and dev.tsv
# make results onion's figures on real data beside Hugging Face's: docs/results.md. Hours; goes on where it stopped.
#              ROWS="mrpc rte" and SIDES=onion do a part; DATA is the folder of all data sets
# make composition   the examples of several tasks or networks beside plain training: docs/composition.md. Hours; goes on
#              where it stopped. ROWS="joint_mrpc siamese" does a part; DATA is the folder of all data sets
PYTHON ?= python3
VENV := .venv
READY := $(VENV)/.ready
RUN := $(VENV)/bin/python
DATA ?= ../shared/data/glue/sst-2
TEXTS ?= "Return the cosine of x in radians." "Decode a base64 encoded bytes-like object." "Wait until the thread terminates."

.PHONY: train test lint bench parity draw sst2 results composition wheel

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

parity: $(READY)
	@$(RUN) scripts/parity.py

draw: $(READY)
	$(RUN) examples/nested_test.py --draw docs/onion.svg

sst2: $(READY)
	@test -e $(DATA)/train.tsv || { echo "SST-2 is not in $(DATA); give its folder: make sst2 DATA=..."; exit 2; }
	$(VENV)/bin/onion train --task classify --train $(DATA)/train.tsv --dev $(DATA)/dev.tsv --passes 1 --out out/sst2

results composition: DATA = ../shared/data

results: $(READY)
	@$(RUN) -m benchmarks.results $(ROWS) --data $(DATA) $(if $(SIDES),--sides $(SIDES))

composition: $(READY)
	@$(RUN) -m benchmarks.composition $(ROWS) --data $(DATA)

wheel: $(READY)
	$(RUN) -m build --wheel --outdir dist .

# One installation serves every target; it is made anew when the dependencies change.
$(READY): setup.cfg pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet --disable-pip-version-check --editable '.[cpu,dev]'
	touch $(READY)
