# Every target works in a fresh clone with nothing but python3 installed.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: setup demo test check bench kill-sweep clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

demo: setup
	@$(BIN)/python examples/demo.py

test: setup
	@$(BIN)/python -m pytest -n 2

check: setup
	@$(BIN)/ruff format --check --quiet src tests bench examples
	@$(BIN)/ruff check --quiet src tests bench examples
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python docs/check.py

bench: setup
	@$(BIN)/python bench/run.py

kill-sweep: setup
	@$(BIN)/python -m pytest -n 2 tests/test_kill_sweep.py --sweep=full

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .hypothesis
