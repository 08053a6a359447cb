# Every target sets up what it needs: a virtual environment in .venv, Java for those that start
# Spark, and servers for those that test with them. `make` alone lists them.

ENV    := .venv
STAMP  := $(ENV)/complete
PYTHON_IN_ENV := $(ENV)/bin/python
CLASSES := $(ENV)/spark_classes.jsa
INPUT  ?=
DATA   ?=
PYTEST_ARGS ?=
BENCH  ?=
MINUTES ?=
CHAOS  ?=
LOCK   ?=

# Images for containers forbid byte code. A test starts many processes, and each would compile the
# library anew: half of what they cost.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help wordcount test quick pythons sparks chaos bench lint typecheck docs lock dist installs notes environment java servers compiled clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

wordcount: $(STAMP) java ## count words on Spark, exactly once: Python's own documentation, or INPUT=file-or-folder
	@$(PYTHON_IN_ENV) examples/wordcount.py $(if $(INPUT),"$(INPUT)") $(if $(DATA),--data "$(DATA)")

# One process more than there are cores, as tests wait for disks, servers and time-outs.
MORE_THAN_CORES := $$(($$(getconf _NPROCESSORS_ONLN) + 1))

test: $(STAMP) servers java $(CLASSES) ## run every test (PYTEST_ARGS="-k word" for some of them)
	@$(PYTHON_IN_ENV) -m pytest --numprocesses $(MORE_THAN_CORES) --dist loadfile \
		--no-loadscope-reorder $(PYTEST_ARGS)

# Pytest compiles tests in its own way, and in each of its processes what is not compiled yet.
compiled: $(STAMP)
	@$(PYTHON_IN_ENV) -m pytest --collect-only -qq >/dev/null

# Where the variable is set a test that asks for a server is skipped. One that starts Spark and is
# not marked so fails, as it finds no Java. What is left out installs projects, starts examples, or
# waits for processes to die; what is drawn by chance is drawn less often.
quick: $(STAMP) ## run the tests that need neither a server nor Java, in less than a minute
	@TRIDENT_TEST_QUICK=1 JAVA_HOME=/nonexistent $(PYTHON_IN_ENV) -m pytest -r fE \
		--numprocesses $(MORE_THAN_CORES) -m "not spark and not slow" \
		--ignore tests/crash --ignore tests/faults --ignore tests/examples $(PYTEST_ARGS)

pythons: $(STAMP) ## run the fast tests on Python 3.11, 3.12 and 3.13, where they are found
	@setup/pythons $(ENV)/pythons $(PYTHON_IN_ENV)

sparks: $(STAMP) servers java ## run a chosen set of tests on Spark 3.5 and 4.0, each in an environment of its own
	@setup/sparks $(ENV)/sparks $(PYTHON_IN_ENV)

chaos: $(STAMP) servers java ## kill drivers and hurt a store, for MINUTES (CHAOS="--state redis: --spark": see docs/reliability.md)
	@$(PYTHON_IN_ENV) -m trident chaos $(if $(CHAOS),$(CHAOS),--state sqlite:) $(if $(MINUTES),--minutes $(MINUTES))

bench: $(STAMP) servers java ## measure, as ratios to the hand-written job of the same run (BENCH="sqlite drpc" for some; BENCH=sizes for docs/performance.md)
	@$(PYTHON_IN_ENV) -m benchmarks $(BENCH)

lint: $(STAMP) ## check the style, and the workflows for what attackers could use
	@$(ENV)/bin/ruff check .
	@$(ENV)/bin/zizmor --offline --quiet --no-progress .github

typecheck: $(STAMP) ## check the types
	@$(ENV)/bin/mypy

# Python's path has the folder itself, so what is documented is this checkout.
docs: $(STAMP) ## build the site into build/site, where every warning is an error
	@$(PYTHON_IN_ENV) -m sphinx --fail-on-warning --keep-going --quiet --conf-dir docs \
		--doctree-dir build/doctrees . build/site

lock: ## pin into requirements.lock what pyproject.toml asks for (LOCK=--upgrade for the newest versions)
	@setup/uv pip compile --quiet $(LOCK) --universal --python-version 3.11 \
		--fork-strategy fewest --all-extras --group dev --generate-hashes --no-annotate \
		--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" \
		pyproject.toml --output-file requirements.lock

dist: ## build the source distribution and the wheel into dist
	@PYTHON="$(PYTHON)" setup/dist dist

installs: ## install what make dist has built, each in an empty environment, and run the quickstart there
	@PYTHON="$(PYTHON)" setup/installs dist

# The shell reads TAG: make would run what stands in one.
notes: ## print the notes of the release TAG, which CHANGELOG.md has
	@setup/notes "$$TAG"

environment: $(STAMP) ## only make the virtual environment (PYTHON=… names the interpreter)

# written last: an attempt that failed halfway is not taken for done
$(STAMP): requirements.lock pyproject.toml setup/environment setup/uv
	@rm -f $@
	@PYTHON="$(PYTHON)" setup/environment $(ENV)
	@touch $@

java:
	@setup/java

# Tests start some thirty JVMs with Spark.
$(CLASSES): $(STAMP) | java
	@echo "saving Spark's classes for the tests (once, half a minute) ..."
	@$(PYTHON_IN_ENV) -m tests.spark.save_classes

servers: ## install Redis, Memcached, PostgreSQL, MariaDB, HBase, HDFS, Kafka, Azurite and a browser, which the tests start by themselves
	@setup/servers

clean: ## remove the environment and what tools left behind (not wordcount-data)
	rm -rf $(ENV) .uv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
