# jaxmbd: everything a checkout needs, from Python 3.11+ and make alone.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CREATED := $(VENV)/.created
INSTALLED := $(addprefix $(VENV)/.installed-,demo test test-torch dev bench docs)

# Compiled programs are kept between runs.
export JAX_COMPILATION_CACHE_DIR ?= $(CURDIR)/.cache/jax
export JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS ?= 0.2
# Loading them logs pages of harmless messages.
export TF_CPP_MIN_LOG_LEVEL ?= 3

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo test test-slow test-torch lint accuracy papers fails-safely programs bench scale latency studies \
	workers environments axles learning nan-hunt integration survive design derivatives gradients synthesis published-synthesis identification imports bench-gpu gpu-counts docs release-check clean

help: ## show this list
	@echo "usage: make TARGET [PYTHON=python3.x] [ARGS='more arguments for the command']"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1|\2/p' $(firstword $(MAKEFILE_LIST)) \
		| awk -F'|' '{ printf "%-16s %s\n", $$1, $$2 }'

demo: $(VENV)/.installed-demo ## run the demonstration
	$(BIN)/jaxmbd demo $(ARGS)

# Small programs recur in all tests, and loading one takes less than half of what compiling it does.
test test-slow test-torch: export JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS = 0

test: $(VENV)/.installed-test ## run the tests, except the slow ones
	$(BIN)/python -m pytest $(ARGS)

test-slow: $(VENV)/.installed-test ## run the slow tests
	$(BIN)/python -m pytest -m slow $(ARGS)

test-torch: $(VENV)/.installed-test $(VENV)/.installed-test-torch ## install PyTorch, run the tests that need it
	$(BIN)/python -m pytest tests/torch tests/test_doctests.py tests/test_public_names.py -k "torch or public_names" $(ARGS)

lint: $(VENV)/.installed-dev ## check style, formatting and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python

docs: $(VENV)/.installed-docs $(VENV)/.installed-test-torch ## build the documentation into build/docs; every warning is an error
	$(BIN)/python -m sphinx -b html -W -n --keep-going $(ARGS) docs build/docs

release-check: ## build wheel and sdist, install them into clean environments; a quarter of an hour
	$(PYTHON) .ci/release $(ARGS)

accuracy: $(VENV)/.installed-test ## compare with the reference results in tests/data
	$(BIN)/python benchmarks/accuracy.py $(sort $(wildcard tests/data/groundtruth/*.json)) $(ARGS)

papers: $(VENV)/.installed-test ## run the systems of the papers, figures in build/papers; half an hour
	@for script in benchmarks/papers/[!_]*.py; do \
		name=$$(basename $$script .py); echo "== $$name"; mkdir -p build/papers; \
		plots=$$(grep -q plots=True $$script && echo --plots build/papers); \
		$(BIN)/python $$script --json benchmarks/results/$$name.json $$plots || exit 1; \
	done

fails-safely: $(VENV)/.installed-test ## judge every public number by an oracle of its own, three times
	$(BIN)/python -W ignore benchmarks/fails_safely.py --runs 3 --json benchmarks/results/fails_safely.json $(ARGS)

programs: $(VENV)/.installed-test ## compare lanes with jax.vmap on ten thousand random programs; an hour
	$(BIN)/python benchmarks/programs.py --json benchmarks/results/programs.json $(ARGS)

bench: $(VENV)/.installed-bench ## measure speed against jax.vmap, Pinocchio, MuJoCo, Exudyn; half an hour
	$(BIN)/python benchmarks/throughput.py --json benchmarks/results/throughput.json $(ARGS)
	$(BIN)/python benchmarks/throughput_table.py

scale: $(VENV)/.installed-bench ## measure long chains and a robot against Pinocchio, one core; five minutes
	$(BIN)/python benchmarks/scale.py --json benchmarks/results/scale.json $(ARGS)
	$(BIN)/python benchmarks/scale_table.py

latency: $(VENV)/.installed-demo ## measure the time to first results, cold and warm; ten minutes
	$(BIN)/python benchmarks/latency.py --json benchmarks/results/latency.json $(ARGS)

imports: $(VENV)/.installed-bench ## compare imported models with MuJoCo and Pinocchio; ten minutes
	$(BIN)/python benchmarks/imports.py --json benchmarks/results/imports.json $(ARGS)

explorer: $(VENV)/.installed-test ## measure the explorer, from a slider to the curve; three minutes
	$(BIN)/python benchmarks/explorer.py --json benchmarks/results/explorer.json $(ARGS)

studies: $(VENV)/.installed-test ## measure large studies: rate, memory; three minutes
	$(BIN)/python benchmarks/studies.py --json benchmarks/results/studies.json $(ARGS)

design: $(VENV)/.installed-bench ## flatten bump steer by gradients, differences and an evolution strategy; two minutes
	$(BIN)/python -W ignore benchmarks/design.py --json benchmarks/results/design.json $(ARGS)

synthesis: $(VENV)/.installed-test ## find linkages for classical paths and a function; four minutes
	$(BIN)/python -W ignore benchmarks/synthesis.py --json benchmarks/results/synthesis.json $(ARGS)

published-synthesis: $(VENV)/.installed-test ## linkages against printed results, over 20 seeds; a quarter of an hour
	$(BIN)/python -W ignore benchmarks/published_synthesis.py --json benchmarks/results/published_synthesis.json $(ARGS)

gradients: $(VENV)/.installed-test ## gradients at dead centres, contacts, springs of no length; a minute
	$(BIN)/python benchmarks/gradients.py --json benchmarks/results/gradients.json $(ARGS)

derivatives: $(VENV)/.installed-test ## measure the compiling of derivatives of statics and modes; five minutes
	$(BIN)/python benchmarks/derivatives_compile.py --json benchmarks/results/derivatives_compile.json $(ARGS)

integration: $(VENV)/.installed-bench ## errors and costs of runs, published motions, Exudyn; twenty minutes
	$(BIN)/python -W ignore benchmarks/integration.py --json benchmarks/results/integration.json $(ARGS)
	$(BIN)/python benchmarks/integration_table.py
	$(BIN)/python benchmarks/equal_errors.py --json benchmarks/results/equal_errors.json
	$(BIN)/python benchmarks/equal_errors_table.py

survive: $(VENV)/.installed-test ## kill studies at random moments, damage their stores; twenty minutes
	$(BIN)/python benchmarks/survive.py --json benchmarks/results/survive.json $(ARGS)

workers: $(VENV)/.installed-test ## measure a study by one, two and four Dask workers
	$(BIN)/python benchmarks/workers.py --json benchmarks/results/workers.json $(ARGS)

environments: $(VENV)/.installed-bench ## the card of environments for learning: speed, exactness, gradients; a quarter of an hour
	$(BIN)/python benchmarks/environments.py --json benchmarks/results/environments.json $(ARGS)
	$(BIN)/python benchmarks/environments_table.py

axles: $(VENV)/.installed-test ## derivatives of an axle's columns by all hardpoints, elastic tables; a minute
	$(BIN)/python -W ignore benchmarks/axles.py --json benchmarks/results/axles.json $(ARGS)

nan-hunt: $(VENV)/.installed-test ## a million random states and designs: a finite value has a right gradient; an hour
	$(BIN)/python -W ignore benchmarks/nan_hunt.py --json benchmarks/results/nan_hunt.json $(ARGS)

learning: $(VENV)/.installed-test ## learn an active suspension by SHAC and PPO, three seeds each; a quarter of an hour
	$(BIN)/python benchmarks/learning.py --json benchmarks/results/learning.json $(ARGS)
	$(BIN)/python benchmarks/learning_table.py

identification: $(VENV)/.installed-test ## identify from noisy data, four hundred times in each case; five minutes
	$(BIN)/python benchmarks/identification.py --json benchmarks/results/identification.json $(ARGS)

# The GPU's driver decides which JAX wheel is installed. Nothing is, if the Python in BIN has a JAX that
# uses the GPU and all that the package needs: make bench-gpu BIN=/path/to/bin works offline.
bench-gpu: $(if $(filter command,$(origin BIN)),,$(CREATED)) ## measure speed on an NVIDIA GPU, every sample checked; eight minutes
	@wheel=$$($(BIN)/python benchmarks/gpu.py --check) || exit 2; \
	if [ -n "$$wheel" ]; then \
		echo "installing jaxmbd and jax[$$wheel] into $(BIN) (a few minutes the first time)"; \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check -e . "jax[$$wheel]"; \
	fi
	$(BIN)/python benchmarks/gpu.py $(ARGS)
	$(BIN)/python benchmarks/gpu_table.py
	$(BIN)/python benchmarks/gpu_bounds.py

gpu-counts: $(VENV)/.installed-test ## count what GPU kernels consist of and execute; needs no GPU; five minutes
	$(BIN)/python benchmarks/gpu_counts.py --json benchmarks/results/gpu_counts.json $(ARGS)
	$(BIN)/python benchmarks/gpu_bounds.py

clean: ## remove the virtual environment, caches and build outputs
	rm -rf .venv .cache .pytest_cache .ruff_cache build dist *.egg-info
	find $(wildcard jaxmbd tests benchmarks examples) -name __pycache__ -type d -prune -exec rm -rf {} +

# One stamp file for the environment and one for each extra installed into it.
$(INSTALLED): $(VENV)/.installed-%: pyproject.toml $(CREATED)
	@echo "installing jaxmbd[$*] into $(VENV) (a few minutes the first time)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[$*]'
	@touch $@

$(CREATED):
	@command -v $(PYTHON) >/dev/null || { \
		echo "error: '$(PYTHON)' not found; jaxmbd needs Python 3.11 or newer." >&2; \
		echo "       Name one with: make PYTHON=/path/to/python3.11 ..." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "error: '$(PYTHON)' is $$($(PYTHON) --version 2>&1); jaxmbd needs 3.11 or newer." >&2; \
		echo "       Name one with: make PYTHON=/path/to/python3.11 ..." >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)
	@touch $@
