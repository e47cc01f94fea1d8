# `make demo` and `make test` are all a fresh machine needs: Python 3.11 or newer, and make.
# `make` alone lists what can be made, from the comments behind `##`.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
WORKFLOWS := $(wildcard .github/workflows/*.yml) docs/clusters/sweep-matrix.yml
PIP    := $(BIN)/python -m pip install --quiet
LOCK   := requirements-lock.txt

# Each process that a test starts would compile the package anew without its byte code.
export PYTHONDONTWRITEBYTECODE :=

FORCE:
.PHONY: FORCE help demo test test-all lint lock docs site pictures error-rates bench same-rows results clean
.DEFAULT_GOAL := help

help:
	@echo 'make TARGET, where TARGET is one of:'
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

demo: $(VENV)/installed  ## install, and draw the phase diagram: half a minute on two cores
	$(BIN)/overfit sweep --n 2:20 --snr 0.1:16
	$(BIN)/overfit plot heatmap

test: $(VENV)/installed-test  ## run the tests
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow"

test-all: $(VENV)/installed-ci  ## run the slow tests too
	$(BIN)/python -m pytest -n auto --dist worksteal

lint: $(VENV)/installed-ci  ## run ruff, mypy, and the linters of imports, workflows and forms
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows $(WORKFLOWS)
	$(BIN)/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff
	$(BIN)/zizmor --offline --quiet $(WORKFLOWS) .github/dependabot.yml

# A version stays while pyproject.toml allows it, and its hashes stay with it. What PyTorch's builds for GPUs need is left out.
lock: $(VENV)/installed-ci  ## write requirements-lock.txt anew; UPGRADE=--upgrade takes the newest versions
	cp $(LOCK) $(VENV)/$(LOCK)
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11.5 --extra ci --generate-hashes --only-binary :all: \
	  --emit-build-options --no-header --no-annotate $(UPGRADE) --output-file $(VENV)/$(LOCK) pyproject.toml
	sed -E '/^(nvidia-|cuda-|triton=)/,/[^\]$$/d' $(VENV)/$(LOCK) > $(VENV)/packages.txt
	sed '/^$$/q' $(LOCK) | cat - $(VENV)/packages.txt > $(VENV)/$(LOCK)
	cp $(VENV)/$(LOCK) $(LOCK)

docs: $(VENV)/installed-ci  ## write the generated parts of the documents anew
	$(BIN)/python -m docs.generate

site: $(VENV)/installed-ci  ## build the documentation as a site in site/, and check its links
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

pictures: $(VENV)/installed-ci  ## draw the pictures of the documents anew, and run their notebook
	$(BIN)/python -m docs.pictures
	$(BIN)/python -m docs.notebook

error-rates: $(VENV)/installed-ci  ## measure how often each verdict errs: an hour or two
	$(BIN)/python -m calibration

bench: $(VENV)/installed-ci  ## measure speed, side by side with plain ways
	$(BIN)/python -m benchmarks.engine
	$(BIN)/python -m benchmarks.processes
	$(BIN)/python -m benchmarks.clusters
	$(BIN)/python -m benchmarks.pathfinder
	$(BIN)/python -m benchmarks.regression
	$(BIN)/python -m benchmarks.classifier
	$(BIN)/python -m benchmarks.landscape
	$(BIN)/python -m benchmarks.heads
	$(BIN)/python -m benchmarks.buffers
	$(BIN)/python -m benchmarks.gram
	$(BIN)/python -m benchmarks.sentences
	$(BIN)/python -m benchmarks.refine
	$(BIN)/python -m benchmarks.dimension
	$(BIN)/python -m benchmarks.scale
	$(BIN)/python -m benchmarks.storm
	$(BIN)/python -m benchmarks.strikes
	$(BIN)/python -m benchmarks.soak
	$(BIN)/python -m benchmarks.estimates

same-rows: $(VENV)/installed  ## train every kept result again, and compare row by row
	$(BIN)/python -m benchmarks.reproduce

results: $(VENV)/installed-ci  ## make the kept quick results anew: over an hour
	rm -rf fresh && mkdir fresh
	cd fresh && ../$(BIN)/overfit reproduce
	for run in fresh/results/*-quick; do \
	  $(BIN)/overfit compact $$run && rm -rf results/$$(basename $$run) && mv $$run results/ || exit; \
	done
	cp fresh/results/report/* results/report/
	rm -rf fresh

clean:  ## remove the virtual environment
	rm -rf $(VENV)

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo 'overfit needs Python 3.11 or newer: make PYTHON=python3.11'; exit 1; }
	$(PYTHON) -m venv $(VENV)

# PyTorch first: the CPU build of its own index. Another build that is installed already stays.
$(VENV)/torch.txt: $(VENV)/bin/python $(LOCK)
	@echo 'Installing; PyTorch is large, so the first time takes a few minutes.'
	@sed -n '/^torch=/,/[^\]$$/p' $(LOCK) > $@.new
	$(PIP) --require-hashes --no-deps --retries 1 --extra-index-url https://download.pytorch.org/whl/cpu -r $@.new
	@mv $@.new $@

# The versions of the lock, without hashes.
$(VENV)/constraints.txt: $(VENV)/bin/python $(LOCK)
	@sed -n 's/^\([a-z].*\) \\$$/\1/p' $(LOCK) > $@

# What an installation rests on, so that another line of pyproject.toml installs nothing anew.
$(VENV)/packages.toml: FORCE $(VENV)/bin/python
	@sed -n '/^requires/p; /^dependencies/,/^\[tool/p' pyproject.toml > $@.new
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi

$(VENV)/installed $(VENV)/installed-test: $(VENV)/torch.txt $(VENV)/constraints.txt $(VENV)/packages.toml
	$(PIP) --constraint $(VENV)/constraints.txt --editable '.$(if $(findstring test,$@),[test])'
	@touch $@

$(VENV)/installed-ci: $(VENV)/torch.txt $(VENV)/constraints.txt $(VENV)/packages.toml
	$(PIP) --require-hashes --no-deps -r $(LOCK)
	$(PIP) --no-deps --no-build-isolation --editable .
	@touch $(VENV)/installed $(VENV)/installed-test $@
