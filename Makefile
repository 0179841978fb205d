# hlsgen: `make demo` and `make test` are all a fresh machine needs (Python >= 3.10, g++, make).
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
JOBS   ?= $(shell nproc 2>/dev/null || echo 2)
comma  := ,
# One after the other, with -j too: apt-get does not wait for the lists of packages.
APT    := flock Makefile $(shell [ "$$(id -u)" = 0 ] || echo sudo) apt-get

.PHONY: setup setup-test tools demo wakeword quick test test-all fuzz soak mutate mutate-builds mutate-cpp lint bench bench-hardware docs clean

# A stamp for each set of extras, renewed when the dependencies change.
$(VENV)/.stamp-%: pyproject.toml
	@$(PYTHON) -c "import ensurepip" 2>/dev/null || { echo "Installing python3-venv (apt)"; \
		$(APT) update -qq && $(APT) install -y -qq python3-venv; }
	@command -v g++ >/dev/null || { echo "Installing g++ and make (apt)"; \
		$(APT) update -qq && $(APT) install -y -qq g++ make; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check $(PIP_OPTIONS) -e '.[$*]'
	@touch $@

setup: $(VENV)/.stamp-demo

setup-test: $(VENV)/.stamp-dev tools

tools:
	@command -v iverilog >/dev/null || { echo "Icarus Verilog is missing: installing iverilog (apt)"; \
		$(APT) update -qq && $(APT) install -y -qq iverilog; }
	@command -v chromium >/dev/null || { echo "Installing chromium (apt): tests look at report.html in it"; \
		$(APT) update -qq && $(APT) install -y -qq --no-install-recommends chromium; } || true
	@command -v ccache >/dev/null || { echo "Installing ccache (apt) to speed up Verilator builds"; \
		$(APT) update -qq && $(APT) install -y -qq ccache; } || true

# A trained network on real data: built, simulated, compared, side by side with float.
demo: setup
	$(BIN)/hlsgen build examples/digits/digits_mlp.onnx -o demo/digits
	$(BIN)/hlsgen verify demo/digits --sim verilator
	$(BIN)/python examples/digits/evaluate.py

# A wake word on a processor with our core, in simulation: a WAV file to detections, in minutes.
wakeword: $(VENV)/.stamp-wakeword
	$(BIN)/python examples/wakeword/run.py

# While you work: no simulator, one or two cases of each test.
quick: setup-test
	$(BIN)/python -m pytest -q -n $(JOBS) tests -m "not sim and not sweep and not slow" --sample 1

# Before a commit that others take. With a share of what test-all adds, another one for each commit.
test: setup-test
	$(BIN)/python -m pytest -q -n $(JOBS) --rotate

# And the long sweeps, with all cases of all tests.
test-all: setup-test
	$(BIN)/python -m pytest -q -n $(JOBS) -m "slow or not slow" --all-cases

# Random graphs, QDQ files and networks of attention, against numpy, qonnx and onnxruntime; what differs is kept in findings/.
MINUTES ?= 10
SEED    ?= $(shell date +%s)
fuzz: setup-test
	$(BIN)/python tests/fuzz/fuzz_graphs.py --seconds $$(($(MINUTES) * 30)) --seed $(SEED)
	$(BIN)/python tests/fuzz/fuzz_qdq_files.py --seconds $$(($(MINUTES) * 10)) --seed $(SEED)
	$(BIN)/python tests/fuzz/fuzz_attention.py --seconds $$(($(MINUTES) * 20)) --seed $(SEED)
	$(BIN)/python tests/fuzz/fuzz_integers.py --seconds $$(($(MINUTES) * 10)) --seed $(SEED)

# Random stalls and resets on random designs in Verilator; what differs is kept in findings/ with the command that repeats it.
soak: setup-test
	$(BIN)/python tests/fuzz/soak.py --seconds $$(($(MINUTES) * 60)) --seed $(SEED)

# Mistakes in the Verilog library, one at a time: which one does simulation not find? All of them take hours.
MODULES ?=
SAMPLE  ?=
CASES   ?=
mutate: setup-test
	$(BIN)/python tests/mutation/mutate.py $(MODULES) $(if $(SAMPLE),--sample $(SAMPLE)) $(if $(CASES),--cases $(CASES))

# Mistakes in the files of builds: parameters, connections, memories. What do simulation and certify not find?
BUILDS ?=
mutate-builds: setup-test
	$(BIN)/python tests/mutation/bindings.py $(BUILDS) $(if $(SAMPLE),--sample $(SAMPLE))

# A mistake in each header of the C++ library, and in what binds units to it: does the test of the header find it?
HEADERS ?=
mutate-cpp: setup-test
	$(BIN)/python cpp_tests/seeds.py $(HEADERS)

lint: $(VENV)/.stamp-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: setup-test
	$(BIN)/python benchmarks/run.py
	$(BIN)/python benchmarks/large_nets.py
	$(BIN)/python benchmarks/cpp_speed.py
	$(BIN)/python benchmarks/start_up.py
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[bench]'
	$(BIN)/python benchmarks/clocks.py

# Size and clock of the workloads of docs/benchmarks.md: Yosys for all, nextpnr for the small ones. Hours, if all has changed;
# ROWS="'NAME' ..." takes some. PEERS=1 measures the other tools that are on PyPI again, too.
ROWS  ?=
PEERS ?=
bench-hardware: setup-test
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[bench$(if $(PEERS),$(comma)peers)]'
	$(if $(PEERS),$(BIN)/python benchmarks/peers.py)
	$(BIN)/python benchmarks/hardware.py $(ROWS) --route

# The site of the documentation, in site/. The pages read as well on GitHub; tests hold them.
docs: $(VENV)/.stamp-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict -q
	@echo "site/index.html"

clean:
	rm -rf $(VENV) site demo build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
