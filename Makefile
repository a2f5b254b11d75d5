# The two commands a newcomer needs are `make demo` and `make test`; each sets up what it uses.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Older versions of pip warn of packages that they build in another way.
INSTALL := $(BIN)/pip install --quiet --use-pep517 -c constraints.txt
# The many processes of the tests share what they compile.
unexport PYTHONDONTWRITEBYTECODE
# Test files side by side. Each file keeps to one process, because its tests share sandboxes.
JOBS ?= auto

.PHONY: demo test test-all test-pythons lint types examples site wheel clean

demo: $(VENV)/.demo
	$(BIN)/assay demo

test: $(VENV)/.dev
	$(BIN)/pytest -n $(JOBS) --dist loadfile -m "not slow" $(ARGS)

# Attacks, chaos, other languages, Ray, several hosts and processes, audits, studies as well.
test-all: $(VENV)/.dev
	$(BIN)/pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder $(ARGS)

# What grades replies, on other interpreters: make test-pythons PYTHONS="python3.12 python3.13"
test-pythons:
	set -e; for python in $(PYTHONS); do \
	    echo "== $$($$python --version) ($$python)"; rm -rf build/pythons; \
	    $$python -m venv build/pythons; \
	    build/pythons/bin/pip install --quiet -c constraints.txt -e '.[judge,dev]' pandas; \
	    build/pythons/bin/pytest -n $(JOBS) --dist loadfile -m "not slow" \
	        tests/verifiers tests/test_patterns.py tests/sandbox/test_image.py; \
	done; rm -rf build/pythons

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# The checker reads the editable install, which lays the folders out by their import names.
types: $(VENV)/.dev
	cd build/editable && ../../$(BIN)/mypy --config-file ../../pyproject.toml -p assay

examples: $(VENV)/.dev
	set -e; for example in $(filter-out examples/nano_grpo.py, $(wildcard examples/*.py)); do \
	    echo "== $$example"; $(BIN)/python $$example; done
	$(BIN)/python examples/nano_grpo.py --steps 5

# The documentation site, build/site/index.html, and llms.txt beside it. A warning fails it.
site: $(VENV)/.dev
	$(BIN)/sphinx-build -q -E -W --keep-going docs build/site

wheel: $(VENV)/.dev
	rm -rf dist build/lib build/bdist.*
	$(BIN)/pip wheel --quiet --no-deps --wheel-dir dist .

$(VENV)/bin/pip:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: $(VENV)/bin/pip pyproject.toml constraints.txt
	$(INSTALL) -e '.[train]'
	touch $@

$(VENV)/.dev: $(VENV)/bin/pip pyproject.toml constraints.txt
	$(INSTALL) -e '.[train,lora,trl,judge,ray,serve,mcp,verl,reasoning-gym,docs,dev]'
	touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info
