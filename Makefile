# `make quick` and `make test` do all the set-up they need; `make help` lists the rest.
.DEFAULT_GOAL := help
.PHONY: help quick quick-profile evening report compare keep-reference audit pair test test-all lint format peers training-speed clean
SHELL := /bin/bash

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SMK := Snakefile workflow/rules/*.smk

help:
	@echo "make quick    the whole workflow in minutes on a CPU: report/quick/index.html and report.pdf"
	@echo "make quick-profile   where the time of the quick run went, stage by stage (another study: STUDY=NAME)"
	@echo "make evening  3 seeds with all their steps, under two hours on 2 cores: report/evening/"
	@echo "make report   the study itself, config/config.yaml: report/index.html and report.pdf"
	@echo "make compare  the study beside the kept reference (another study: CONFIG=FILE)"
	@echo "make keep-reference   a finished study's tables and reports as results/reference/, and README from them (STUDY=NAME CONFIG=FILE)"
	@echo "make audit    does other people's speculative decoding keep the distribution? report/quick/audit.html"
	@echo "make pair     does speculation pay for your own models? report/pair/index.html (SmolLM2 without an edit)"
	@echo "make test     linters and tests"
	@echo "make test-all the slow tests, which make test leaves out"
	@echo "make format   format Python and Snakemake files"
	@echo "make peers    our decoding beside Hugging Face transformers' (after make report; another study: CONFIG=FILE)"
	@echo "make training-speed   our training beside a plain loop (the same)"
	@echo "make clean    remove the environment (results and reports stay)"

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	  { echo "specledger: $(PYTHON) is missing or older than 3.11; name another: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || \
	  { rm -rf $(VENV); echo "specledger: $(PYTHON) can't make a virtual environment; on Debian: apt install python3-venv" >&2; exit 1; }

$(VENV)/installed: pyproject.toml requirements.lock | $(BIN)/python
	@echo "specledger: installing pinned dependencies into $(VENV) (once)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements.lock -e '.[study]'
	@touch $@

$(VENV)/installed-test: $(VENV)/installed
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements.lock -e '.[study,test,cluster]'
	@touch $@

$(VENV)/installed-peers: $(VENV)/installed
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements.lock -e '.[study,peers]'
	@touch $@

$(VENV)/installed-pair: $(VENV)/installed
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements.lock -e '.[study,pair]'
	@touch $@

quick: $(VENV)/installed
	@$(BIN)/snakemake --configfile config/quick.yaml
	@echo "specledger: open $(CURDIR)/report/quick/index.html or $(CURDIR)/report/quick/report.pdf"

# Snakemake's own benchmark files, in a table for docs/benchmarks.md.
quick-profile: $(if $(STUDY),$(VENV)/installed,quick)
	@$(BIN)/python benchmarks/stage_times.py $(or $(STUDY),quick)

evening: $(VENV)/installed
	@$(BIN)/snakemake --resources gpu=1 --configfile config/evening.yaml
	@echo "specledger: open $(CURDIR)/report/evening/index.html or $(CURDIR)/report/evening/report.pdf"

report: $(VENV)/installed
	@$(BIN)/snakemake --resources gpu=1
	@echo "specledger: open $(CURDIR)/report/index.html or $(CURDIR)/report/report.pdf"

compare: $(VENV)/installed
	@$(BIN)/snakemake compare --resources gpu=1 $(if $(CONFIG),--configfile $(CONFIG))

keep-reference: $(VENV)/installed
	@$(BIN)/python benchmarks/keep_reference.py $(or $(STUDY),study) $(if $(CONFIG),--configfile $(CONFIG))

audit: $(VENV)/installed
	@$(BIN)/snakemake --cores all --quiet rules --configfile config/audit.yaml
	@echo "specledger: open $(CURDIR)/report/quick/audit.html"

pair: $(VENV)/installed-pair
	@$(BIN)/snakemake --cores all --quiet rules --resources gpu=1 --configfile config/pair.yaml
	@echo "specledger: open $(CURDIR)/report/pair/index.html"

peers: $(VENV)/installed-peers
	@$(BIN)/python benchmarks/peers.py $(if $(CONFIG),--configfile $(CONFIG))

training-speed: $(VENV)/installed
	@$(BIN)/python benchmarks/training.py $(if $(CONFIG),--configfile $(CONFIG))

lint: $(VENV)/installed-test
	@$(BIN)/ruff check workflow tests benchmarks
	@$(BIN)/ruff format --check workflow tests benchmarks
	@$(BIN)/snakefmt --check $(SMK)
	@$(BIN)/snakemake --lint

test: lint
	@$(BIN)/python -m pytest -n 2 -m "not slow"

# What is slow and rarely breaks; with make test before it, these are all tests.
test-all: $(VENV)/installed-test
	@$(BIN)/python -m pytest -n 2 -m slow

format: $(VENV)/installed-test
	@$(BIN)/ruff check --fix workflow tests benchmarks
	@$(BIN)/ruff format workflow tests benchmarks
	@$(BIN)/snakefmt $(SMK)

clean:
	rm -rf $(VENV)
