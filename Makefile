# What can be made, with the settings that each target takes: `make help`, which prints what stands behind ## here.
PYTHON ?= python3
VENV := .venv
READY := $(VENV)/.ready
RUN := $(VENV)/bin/python
# Tests of a file stay together: many share what a fixture has trained.
WORKERS ?= 2
AT_ONCE = --numprocesses $(WORKERS) --dist loadfile
FAST := $(wildcard tests/test_*.py) $(addprefix tests/,checkpointing data engine host items monitoring multitask testing training)
DATA ?= ../shared/data/glue/sst-2
TEXTS ?= "Return the cosine of x in radians." "Decode a base64 encoded bytes-like object." "Wait until the thread terminates."

.PHONY: train help test test-fast test-busy test-min-deps lint format bench parity crash-test distributed kill-ranks trouble-ranks same-bits interrupt exactly-once online attack-service hostile spoil soak online-load web-assets settings-page notebooks figures ernie-demo pretraining-counts pretraining-parity pretraining train-sst2 results composition serve-load clients students compression wheel sdist image docs docs-serve portable arm gpu-dry gpu

## train and predict with the example of the README, from nothing
train: $(READY)
	@$(RUN) examples/main_job.py $(TEXTS)

## list the targets
help:
	@awk '/^## / {sub(/^## /, ""); text = text (text ? sprintf("\n%-25s", "") : "") $$0; next} \
	      text {sub(/:.*/, ""); printf "make %-20s%s\n", $$0, text; text = ""}' $(firstword $(MAKEFILE_LIST))

## lint and all tests, by WORKERS (2) processes at the same time
test: lint
	$(RUN) -m pytest $(AT_ONCE) -m 'not ranks'

## the tests of the engine, its data and its items that are not marked slow: about a minute
test-fast: $(READY)
	$(RUN) -m pytest $(AT_ONCE) -q -m 'not slow and not ranks' $(FAST)

## the tests of trainings by several processes, which `make test` leaves out: about six minutes on two cores. ETCD=1 adds
## those of elastic launchers, which need etcd-server (apt)
distributed: $(READY) $(if $(ETCD),$(VENV)/.ready-elastic)
	$(RUN) -m pytest -m 'ranks$(if $(ETCD),, and not etcd)' tests/distributed

## the tests N times (5), beside LOAD (8) busy processes: what depends on time will fail.
## TESTS="tests/items tests/models" does a part
test-busy: $(READY)
	@for i in $$(seq $(or $(LOAD),8)); do $(RUN) -c 'while True: pass' & busy="$$busy $$!"; done; trap 'kill $$busy' EXIT; \
	for i in $$(seq $(or $(N),5)); do $(RUN) -m pytest -q $(AT_ONCE) -m 'not ranks' $(TESTS) || failed=1; done; exit $${failed:-0}

## check formatting, style and types
lint: $(READY)
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy

## format the code
format: $(READY)
	$(RUN) -m ruff check --select I --fix --quiet .
	$(RUN) -m ruff format .

## onion beside its peers, in turns: benchmarks/results.md. NAMES="loop data" does a part; the peers go where
## those of `make parity` go
bench: $(READY)
	@$(RUN) -m benchmarks $(NAMES); status=$$?; $(RUN) -m benchmarks.plots; \
	$(RUN) -m benchmarks.distributed.scaling_page; exit $$status

## onion beside transformers, sentence-transformers and PaddleNLP: a table. They go into environments of their
## own (3 GB) in ONION_PARITY, by default onion-parity in the user's cache
parity: $(READY)
	@$(RUN) -m scripts.parity

## trainings of several processes of which random ranks are killed while they start, load, train and save, and which go
## on with another number of processes, each compared with an uninterrupted one: a table. N kills (100); ETCD=10 kills
## more under elastic launchers, which needs etcd-server (apt); SEED to draw the same again
kill-ranks: $(READY) $(if $(ETCD),$(VENV)/.ready-elastic)
	@$(RUN) -m scripts.kill_ranks --kills $(or $(N),100) --etcd $(or $(ETCD),0) --seed $(or $(SEED),1)

## each trouble (signals, NaN, full disk, kills, halts, desynchronised ranks) on each rank of 2 and of 4 processes: a table of
## what came of it on all ranks. PROCESSES="2"; TROUBLES="kill other-order" does a part
trouble-ranks: $(READY)
	@$(RUN) -m scripts.trouble_ranks $(if $(PROCESSES),--processes $(PROCESSES)) $(if $(TROUBLES),--troubles $(TROUBLES))

## MiniLM on MRPC and small trainings in 1, 2, 4 and 8 processes, compared bit by bit: a table. DATA is the folder of MRPC;
## PARTS="mrpc command small plain" does a part; ROWS (243) examples of MRPC
same-bits: $(READY)
	@$(RUN) -m scripts.same_bits $(DATA) $(if $(PARTS),--parts $(PARTS)) $(if $(ROWS),--rows $(ROWS))

## runs killed anywhere by SIGKILL and resumed, each compared with an uninterrupted run: a table. N runs
## (200), JOBS (2) at the same time; SEED to draw the same again
crash-test: $(READY)
	@$(RUN) -m scripts.crash_test $(if $(N),--count $(N)) $(if $(SEED),--seed $(SEED)) $(if $(JOBS),--jobs $(JOBS))

## runs that get Ctrl-C while they save, in the foreground and in the background, and are resumed in the same process, each
## compared with an uninterrupted run: a table. N runs (500); SEED to draw the same again
interrupt: $(READY)
	@$(RUN) -m scripts.interrupt $(if $(N),--count $(N)) $(if $(SEED),--seed $(SEED))

## trainer, producer and redis-server killed anywhere, every sample counted in the weights: a line of JSON a
## source. SOURCES="spool redis folder"; N samples (100,000); KILLS (200) a source; SEED; PROCESSES (1) of the trainer
exactly-once: $(READY)
	@$(RUN) -m scripts.online.exactly_once $(foreach each,$(SOURCES),--source $(each)) $(if $(N),--samples $(N)) $(if $(KILLS),--kills $(KILLS)) $(if $(SEED),--seed $(SEED)) $(if $(PROCESSES),--processes $(PROCESSES))

## a producer, a trainer and a control client: a run that is controlled, killed, resumed, stopped, counted and replayed
online: $(READY)
	@$(RUN) -m scripts.online.steered $(if $(N),--samples $(N))

## a run whose service is attacked in every way at once has to learn the same bits. TIME in seconds (60); SEED
attack-service: $(READY)
	@$(RUN) -m scripts.service_attack siege $(if $(TIME),--seconds $(TIME)) $(if $(SEED),--seed $(SEED))

## broken data files of every task through all commands: each succeeds or ends with one message, and nothing is
## half-written. N files (300); SEED
spoil: $(READY)
	@$(RUN) -m scripts.spoil $(if $(N),--count $(N)) $(if $(SEED),--seed $(SEED))

## hostile requests to the service of a run, one by one: each is refused, and the run learns the same bits. N requests
## (200); SEED to draw the same again
hostile: $(READY)
	@$(RUN) -m scripts.service_attack requests $(if $(N),--count $(N)) $(if $(SEED),--seed $(SEED))

## a day of batches through a whole online run: reports what grows
soak: $(READY)
	@$(RUN) -m scripts.soak

## what the service costs the training, and what it takes in: docs/online_load.md
online-load: $(READY)
	@$(RUN) -m benchmarks.online_load

## fetch the libraries of the pages that ControlServer and onion serve show
web-assets: $(READY)
	@$(RUN) -m scripts.web_assets

## the reference of all settings, docs/settings.md
settings-page: $(READY)
	@$(RUN) -m scripts.settings_page docs/settings.md

## run the notebooks of docs/tutorials and store what they print. NAMES="gan online" does these
notebooks: $(READY)
	@$(RUN) -m scripts.notebooks $(NAMES)

## what the pages have without measuring: docs/onion.svg, docs/plots, docs/distributed_scaling.md
figures: $(READY)
	$(RUN) examples/nested_test.py --draw docs/onion.svg
	$(RUN) -m benchmarks.plots
	$(RUN) -m benchmarks.distributed.scaling_page

# mkdocs-material tells of its successor in every build.
MKDOCS := NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs

## the site, in build/site; a dead link or a docstring that cannot be parsed is an error
docs: $(VENV)/.ready-docs
	$(MKDOCS) build --strict --quiet

## the site at http://127.0.0.1:8000, built again whenever a page changes
docs-serve: $(VENV)/.ready-docs
	$(MKDOCS) serve

## counts, masks and borders of words of the data that ERNIE 1.0 is published with, against what they should be; DATA is the
## folder with demo_train_set.gz and demo_valid_set.gz, beside vocab/ernie-1.0-zh
ernie-demo: $(READY)
	@$(RUN) -m scripts.ernie_demo $(DATA)

## examples, shares of classes and baselines of the pretraining tasks of sentences and relations on Wikipedia's texts,
## beside known counts of discourse markers; half a minute; needs the extra chinese; DATA is the folder of all data sets
pretraining-counts: $(READY)
	@$(RUN) -m scripts.pretraining_counts $(DATA)

## thirty steps of ERNIE 1.0's pretraining, on those data with its own masks, by onion and by a loop in plain Paddle: the
## cost of each. DATA as above
pretraining-parity: $(READY)
	@$(RUN) -m scripts.pretraining_parity $(DATA)

## one pass over SST-2 (67,349 sentences); DATA is a folder with its train.tsv and dev.tsv
train-sst2: $(READY)
	@test -e $(DATA)/train.tsv || { echo "SST-2 is not in $(DATA); give its folder: make train-sst2 DATA=..."; exit 2; }
	$(VENV)/bin/onion train --task classification --train $(DATA)/train.tsv --dev $(DATA)/dev.tsv --passes 1 --output out/sst2

results composition students compression pretraining gpu pretraining-counts: DATA = ../shared/data
same-bits: DATA = ../shared/data/glue/mrpc
ernie-demo pretraining-parity: DATA = ../shared/data/ernie_pretrain_demo

## onion's figures on real data beside Hugging Face's: docs/results.md. Hours; resumes where it stopped.
## ROWS="mrpc rte" and SIDES=onion do a part; DATA is the folder of all data sets
results: $(READY)
	@$(RUN) -m benchmarks.results $(ROWS) --data $(DATA) $(if $(SIDES),--sides $(SIDES))

## REQUESTS calls by CALLERS to a served model, MODEL (an exported folder), each answer held against its own text while the
## model is loaded again and callers leave; SECONDS=3600 calls for so long instead, HOSTILE=1 lets attackers in
serve-load: REQUESTS ?= 100000
serve-load: CALLERS ?= 32
serve-load: $(READY)
	@$(RUN) -m scripts.serving_load $(MODEL) --requests $(REQUESTS) --callers $(CALLERS) \
		$(addprefix --seconds ,$(SECONDS)) $(if $(HOSTILE),--hostile)

## clients of other services (openai, huggingface_hub, tritonclient, curl), unchanged, at onion serve
clients: $(READY)
	@$(RUN) -m scripts.clients

## what pretraining on Chinese text gains: docs/pretraining_study.md. Days; resumes where it stopped. ARMS="none words" does
## a part; DATA is the folder of all data sets; SCALE=0.001 makes a trial of it in out/pretraining, in minutes an arm;
## THREADS=1 in two shells with different ARMS is 1.3 times as fast on two cores as one after the other
pretraining: $(VENV)/.ready-chinese $(VENV)/.ready-entities
	@$(RUN) -m benchmarks.pretraining.study $(ARMS) --data $(DATA) $(if $(SCALE),--scale $(SCALE)) $(if $(THREADS),--threads $(THREADS))

## the examples of several tasks or networks beside plain training: docs/composition.md. Hours; resumes where it
## stopped. ROWS="joint_mrpc siamese" does a part; DATA is the folder of all data sets
composition: $(READY)
	@$(RUN) -m benchmarks.composition $(ROWS) --data $(DATA)

## smaller models with 8 bits beside those they were made of: docs/compressed.md. Resumes where it stopped. SETS="mrpc
## sst-2" does a part
compression: $(READY)
	@$(RUN) -m benchmarks.compression.study $(SETS) --data $(DATA)

## small students with and without a teacher: docs/students.md. Resumes where it stopped. SETS="sst-2 chnsenticorp" does a
## part, TEACHERS="chnsenticorp=RUN" gives trained teachers; DATA is the folder of all data sets
students: $(READY)
	@$(RUN) -m benchmarks.students $(SETS) --data $(DATA) $(addprefix --teacher ,$(TEACHERS))

## the wheel, in dist/
wheel: $(READY)
	@$(RUN) -m scripts.web_assets || echo "the pages in this wheel will lack libraries"
	rm -f dist/onion_paddle-*.whl
	$(RUN) -m build --wheel --outdir dist .

## the container image of `onion serve`, onion-serve, which needs Docker
image: wheel
	docker build --tag onion-serve --file deploy/Dockerfile dist

## the source distribution and a wheel built from it, both checked by twine, in dist/
sdist: $(VENV)/.ready-release
	@$(RUN) -m scripts.web_assets || echo "the pages in these distributions will lack libraries"
	rm -f dist/onion_paddle-*
	$(RUN) -m build --outdir dist .
	$(RUN) -m twine check --strict dist/onion_paddle-*

## tests/models by the kernels for AVX2 (left out where `make test` has them too: AMD without AVX-512); and, emulated,
## every task on a processor without AVX-512, which needs qemu-user (without it, error 77; in CI a failure).
## PARTS=native or PARTS=emulated does one of them
portable: $(READY)
	@$(RUN) -m scripts.portable $(PARTS) --workers $(WORKERS)

## onion on emulated ARM (qemu-user, apt): a part of the tests, and a training that is cut off and resumed. Debian's Python
## and the wheels go into ONION_ARM (0.8 GB), by default onion-arm in the user's cache. TESTS="tests/data" does a part
arm: $(READY)
	@$(RUN) -m scripts.arm $(TESTS)

MIN_DEPS := .venv-min-deps
test-min-deps gpu-dry: TESTS ?= tests

## all tests with the lowest versions that setup.cfg admits (Python 3.10 or 3.11), and a run that is resumed with
## Paddle 2.6. TESTS="tests/items tests/models" does a part, MARKS="not slow" those that are marked so
test-min-deps: $(MIN_DEPS)/.ready $(MIN_DEPS)-paddle2/.ready
	$(MIN_DEPS)/bin/python -m pytest -x -q -p no:cacheprovider $(AT_ONCE) $(if $(MARKS),-m '$(MARKS)') $(TESTS)
	$(MIN_DEPS)-paddle2/bin/python .ci/resume_a_little.py

# Paddle 3.0 does less: AdamW cannot set its state there on the CPU. Of Paddle 2 the bound in setup.cfg itself is tried.
$(MIN_DEPS)/.ready: INSTEAD := paddlepaddle==3.1.0

$(MIN_DEPS)/.ready $(MIN_DEPS)-paddle2/.ready: setup.cfg scripts/min_deps.py
	$(PYTHON) -m venv --clear $(@D)
	$(PYTHON) scripts/min_deps.py $(INSTEAD) > $(@D)/pins.txt
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --requirement $(@D)/pins.txt
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

GPU := .venv-gpu
# Paddle's build for GPUs tells every process where there is none.
WITHOUT_A_WORD := PYTHONWARNINGS="ignore:You are using GPU version Paddle"

## all tests with the last GPU build of Paddle on the package index (2.6.2, 3 GB), without a GPU; what Paddle 2.6
## cannot do is skipped, with the reason. And: has it a GPU kernel for every operator that onion uses? TESTS as above
gpu-dry: $(GPU)/.ready
	$(WITHOUT_A_WORD) $(GPU)/bin/python -m pytest -q -p no:cacheprovider $(AT_ONCE) $(TESTS)
	$(WITHOUT_A_WORD) $(GPU)/bin/python -m scripts.gpu_operators

GPU_PYTHON ?= $(PYTHON)
REPORT ?= out/gpu.md

## on a machine with a GPU: tests that need one, parity, mixed precision, kills, speed and memory, in a report that
## can be pasted into an issue: docs/gpu.md. GPU_PYTHON is a Python with onion and a Paddle for GPUs in it; nothing is
## installed. PARTS="tests kills" does a part; DATA is the folder of all data sets; REPORT is where it is written
gpu:
	@$(GPU_PYTHON) -m scripts.gpu $(PARTS) --data $(DATA) --report $(REPORT)

# Paddle 2.6 was built for numpy 1.
$(GPU)/.ready: setup.cfg pyproject.toml
	$(PYTHON) -m venv --clear $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[gpu,dev]' paddlepaddle-gpu==2.6.2 'numpy<2'
	touch $@

# One installation serves every target; it is made anew when the dependencies change.
$(READY): setup.cfg pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet --disable-pip-version-check --editable '.[cpu,dev]'
	touch $(READY)

# What one target alone needs: the extra of its name.
$(VENV)/.ready-%: $(READY)
	$(RUN) -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	touch $@
