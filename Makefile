# `make demo` and `make test` are all a fresh machine needs: Python 3.11 or newer, and make.
# `make` alone lists what can be made, from the comments behind `##`.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --constraint constraints.txt

# Each process that a test starts would compile the package anew without its byte code.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help demo test test-all lint docs pictures error-rates bench reproduce results clean
.DEFAULT_GOAL := help

help:
	@echo 'make TARGET, where TARGET is one of:'
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

demo: $(VENV)/installed  ## install, and draw the phase diagram: half a minute on two cores
	$(BIN)/overfit sweep --n 2:20 --snr 0.1:16
	$(BIN)/overfit plot heatmap

test: $(VENV)/installed-dev  ## run the tests
	$(BIN)/python -m pytest -n auto -m "not slow"

test-all: $(VENV)/installed-dev  ## run the slow tests too
	$(BIN)/python -m pytest -n auto

lint: $(VENV)/installed-dev  ## run ruff, mypy, and the linters of imports and of workflows
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/zizmor --offline --quiet .github/workflows

docs: $(VENV)/installed-dev  ## write the generated parts of the documents anew
	$(BIN)/python -m docs.generate

pictures: $(VENV)/installed-dev  ## draw the pictures of the documents anew, from the kept runs
	$(BIN)/python -m docs.pictures

error-rates: $(VENV)/installed-dev  ## measure how often each verdict errs: half an hour
	$(BIN)/python -m docs.calibrate

bench: $(VENV)/installed-dev  ## measure speed, side by side with plain ways
	$(BIN)/python -m benchmarks.engine
	$(BIN)/python -m benchmarks.processes
	$(BIN)/python -m benchmarks.pathfinder
	$(BIN)/python -m benchmarks.regression
	$(BIN)/python -m benchmarks.classifier
	$(BIN)/python -m benchmarks.landscape
	$(BIN)/python -m benchmarks.heads
	$(BIN)/python -m benchmarks.gram
	$(BIN)/python -m benchmarks.refine
	$(BIN)/python -m benchmarks.dimension
	$(BIN)/python -m benchmarks.scale
	$(BIN)/python -m benchmarks.storm

reproduce: $(VENV)/installed  ## train every kept result again, and compare row by row
	$(BIN)/python -m benchmarks.reproduce

# $(call reference,DIRECTORY,PRESETS,FIGURES) makes a kept run anew: its cells, figures and report.
define reference
	rm -rf results/$(1)-quick
	for preset in $(2); do $(BIN)/overfit sweep $$preset || exit; done
	for figure in $(3); do \
	  $(BIN)/overfit plot $$figure --from results/$(1)-quick || exit; done
	$(BIN)/overfit report --from results/$(1)-quick --out results/$(1)-quick
	$(BIN)/overfit compact results/$(1)-quick
endef

results: $(VENV)/installed  ## make the kept results anew: hours
	$(call reference,fig1,fig1,heatmap cutoff boundary)
	$(call reference,fig1-balanced,fig1-balanced,heatmap cutoff boundary)
	$(call reference,fig2,fig2,heatmap images)
	$(call reference,dynamics,dynamics-benign dynamics-harmful,dynamics)
	$(call reference,theorem-dynamics,theorem-dynamics-benign theorem-dynamics-harmful,dynamics)
	$(call reference,theorem-regime,theorem-regime,heatmap cutoff)
	$(call reference,theorem-transition,theorem-transition,boundary heatmap)
	$(call reference,dimension,dimension,dimension)
	$(call reference,strong-noise,strong-noise,heatmap)
	$(call reference,kernel-theorem1,kernel-theorem1,curves learning-rates)
	$(call reference,kernel-theorem2,kernel-theorem2,curves learning-rates)
	$(call reference,kernel-theorem3,kernel-theorem3,curves learning-rates)
	$(call reference,kernel-example,kernel-example,curves learning-rates)
	$(call reference,kernel-example-condition,kernel-example-condition,curves)
	$(call reference,kernel-sizes,kernel-sizes,)
	$(call reference,kernel-fig2,kernel-fig2,curves learning-rates)
	$(call reference,kernel-fig3,kernel-fig3,curves learning-rates samples)
	$(call reference,kernel-fig4,kernel-fig4,landscape)
	$(call reference,heads-fig2,heads-fig2,heads)
	$(call reference,heads-fig3,heads-fig3-sqrt heads-fig3-adam,heads)
	$(call reference,heads-planted,heads-fig4 heads-fig5 heads-fig5-adam,heads)
	$(call reference,heads-adam-large,heads-adam-large,heads)
	$(call reference,heads-margin,heads-margin,heads)
	$(call reference,heads-normalised,heads-normalised,heads)
	$(call reference,heads-identical,heads-identical,)
	$(call reference,heads-certificates,heads-certificates,certificates)
	$(call reference,heads-certificates-planted,heads-certificates-planted,certificates)
	$(call reference,heads-random,heads-random,certificates)
	$(call reference,heads-random-planted,heads-random-planted,certificates)
	$(call reference,heads-steps,heads-steps,heatmap boundary)
	$(call reference,heads-machine,heads-machine,heads)
	$(call reference,heads-second,heads-second,heatmap)
	$(call reference,heads-second-planted,heads-second-planted,heatmap)
	$(call reference,softmax-table1,softmax-table1,table1 heatmap)
	$(call reference,softmax-table1-paper,softmax-table1-paper,table1)
	$(call reference,softmax-drift,softmax-drift,kernel-drift ntk-gap)
	$(call reference,softmax-curves,softmax-curves,curves)
	$(call reference,softmax-dimension,softmax-dimension,lines)
	$(call reference,softmax-eigenvalues,softmax-eigenvalues,eigenvalues)
	$(call reference,softmax-kernels,softmax-kernels,)
	$(call reference,softmax-digits,softmax-digits,table1 heatmap)
	$(call reference,softmax-scores,softmax-scores,score samples)
	$(call reference,softmax-scores-digits,softmax-scores-digits,score samples)
	$(call reference,softmax-scores-gd,softmax-scores-gd,lines curves)

clean:  ## remove the virtual environment
	rm -rf $(VENV)

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo 'overfit needs Python 3.11 or newer: make PYTHON=python3.11'; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: $(VENV)/bin/python pyproject.toml constraints.txt
	@echo 'Installing; PyTorch is large, so the first time takes a few minutes.'
	$(PIP) --editable .
	@touch $@

$(VENV)/installed-dev: $(VENV)/installed
	$(PIP) --editable '.[dev]'
	@touch $@
