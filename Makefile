# Faultline's two commands are `make demo` and `make test`; both first set up what is missing and say what they do.
# `make help` lists the rest.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

BIN := .venv/bin
PYTHON_CODE := faultline tests tools benchmarks
# Given to pytest, faultline demo and the benchmark: make test ARGS='-k quorum', make bench ARGS='--seeds 0..49'.
ARGS ?=

.PHONY: help demo test check lint format fuzz robustness campaign random-runs evidence bench docs site harness-bugs lock clean python java hosts

help:  ## this list
	@sed -nE 's/^([a-z-]+):.*  ## (.*)/  make \1\t\2/p' Makefile | expand -t 22

demo: python java  ## a campaign on this machine: planted bugs found, the correct system clean, an HTML report
	@$(BIN)/faultline demo $(ARGS)

test: check java hosts  ## everything CI runs: lint, types, then all tests in random order
	@tools/run_tests.sh $(ARGS)

check: lint  ## lint and types, without the tests
	@echo 'check: mypy --strict'
	@$(BIN)/mypy --strict

lint: python  ## ruff's rules and its formatting
	@echo 'lint: ruff check, ruff format --check'
	@$(BIN)/ruff check $(PYTHON_CODE)
	@$(BIN)/ruff format --check --quiet $(PYTHON_CODE) || { echo 'lint: not formatted; run: make format' >&2; exit 1; }

format: python  ## rewrite the code as ruff formats it, and mend what it can mend safely
	@$(BIN)/ruff check --fix --quiet $(PYTHON_CODE) || true
	@$(BIN)/ruff format $(PYTHON_CODE)

fuzz: python  ## an hour: damaged and rewritten inputs at every door, of which nothing but exit codes may come
	@$(BIN)/python tools/fuzz_doors.py --inputs 1000000000 --seconds 3600 --first $$(( $$(date +%s) * 1000 )) --keep fuzz-findings $(ARGS)

robustness: python java  ## an hour or two: each write of runs and campaigns fails in turn, and commands are killed at random
	@$(BIN)/python tools/fail_every_write.py
	@$(BIN)/python tools/fail_campaign_writes.py
	@$(BIN)/python tools/kill_at_random.py --trials 140

campaign: python  ## hours: what finds each planted bug, and 5,000 seeds of each correct system, recorded with seeds
	@$(BIN)/python tools/record_evidence.py $(ARGS)

evidence: python hosts  ## what real stores are known to do, run on hosts of namespaces where it is not recorded yet
	@$(BIN)/python tools/real_evidence.py --missing $(ARGS)

random-runs: python  ## an hour: 20,000 runs of the correct systems, drawn from all that is legal; none may be accused
	@$(BIN)/python tools/random_clean_runs.py --runs 20000 --processes $$(nproc) $(ARGS)

bench: python  ## runs and events a second of the simulated world, on one core
	@$(BIN)/python benchmarks/simulate_runs.py $(ARGS)

docs: python  ## the reference pages that are made from the registries
	@$(BIN)/python tools/generate_reference.py

site: python  ## the documentation as a site in site/, built strictly: a broken link or anchor fails
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "site: $$(find site -name '*.html' | wc -l) pages, $$(du -sh site | cut -f1), in site/index.html"

harness-bugs: python  ## planted bugs of the harness itself, each with every scenario, and the page that lists them
	@$(BIN)/python tools/harness_bugs.py

lock: python  ## requirements.lock from pyproject.toml, with hashes; ARGS=--upgrade takes the newest versions that fit
	@tools/lock.sh $(ARGS)

clean:  ## remove what these commands made in this folder, but no store and no report
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist site
	find faultline tests tools benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

python:
	@tools/set_up.sh python

java:
	@tools/set_up.sh java

hosts:
	@tools/set_up.sh hosts
