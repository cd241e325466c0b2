# Two commands: `make install`, then `make test`.
#
#   PYTHON=...   the interpreter to install into (default: the active one, or
#                .venv where the system forbids installing into its own)
#   TRITON=3.6.0 that release of Triton instead of the one present

PYTHON ?=
TRITON ?=
BUILD ?= build/core
JOBS ?= $(shell nproc)
# Tests at a time: one more than cores, as some wait. On a GPU, each takes memory of its own.
TEST_JOBS ?= $(shell echo $$(($(JOBS) < 16 ? $(JOBS) + 1 : 16)))
# The interpreter that `make install` chose.
PY = $(or $(PYTHON),$(shell cat build/python 2>/dev/null),python3)

export TAD_BUILD_DIR := $(abspath $(BUILD))
export MAX_JOBS := $(JOBS)

.PHONY: install test lit pytest fuzz fuzz-gpu fuzz-opt fuzz-passes fuzz-opt-binary mutation mutation-wheel wheel \
  carry carry-packages gpu-test sanitize arena bench docs format lint self-contained types \
  corners clean

install:
	scripts/install.sh "$(PYTHON)" "$(TRITON)"

test: lit pytest

# The tools that only the lit tests need.
lit:
	ninja -C $(BUILD) -j $(JOBS)
	$(PY) -c 'from lit.main import main; main()' -q -Dbuild=$(TAD_BUILD_DIR) test third_party/autodiff/test

# TESTS names some of them. Idle threads of PyTorch sleep: each process has as many as there are
# cores, and where they spin they keep the other processes waiting. At the end: what takes longest.
TESTS ?= python/test
pytest:
	OMP_WAIT_POLICY=passive $(PY) -m pytest -q -rs -n $(TEST_JOBS) --dist worksteal \
	  --durations=30 --durations-min=1 $(TESTS)

# Gradients of N random programs against finite differences and, in half precision,
# float64; JOBS programs at a time. Results and failing programs, made small, are in
# OUT; with its SEED, a run goes on where it was cut off. FUZZ has further options,
# such as `--kind KIND` and `--without KIND` (fuzz/campaign.py).
N ?= 1000
SEED ?=
OUT ?= build/fuzz
FUZZ ?=
fuzz:
	PYTHONPATH=python/test $(PY) -m fuzz.campaign $(N) --jobs $(JOBS) --out $(OUT) \
	  $(if $(SEED),--seed $(SEED)) $(FUZZ)

# Those that suit a GPU run there, in half precision, tf32, float32 and float64.
fuzz-gpu:
	$(MAKE) fuzz FUZZ="--device cuda $(FUZZ)"

# N mangled TTIR files through a compiler built with sanitizers, and in it N times one
# or two passes on what others have left; CORPUS is a folder of more TTIR. With its
# SEED, the latter goes on where it was cut off.
CORPUS ?=
fuzz-opt: fuzz-passes
	$(PY) scripts/fuzz_opt.py --tries $(N) --jobs $(JOBS) $(if $(SEED),--seed $(SEED)) $(if $(CORPUS),--corpus $(CORPUS))

fuzz-passes:
	$(PY) scripts/fuzz_passes.py --tries $(N) --jobs $(JOBS) $(if $(SEED),--seed $(SEED)) $(if $(CORPUS),--corpus $(CORPUS))

# That compiler, and CORPUS, in .wheels/ for a machine without MLIR; there:
#   gunzip .wheels/triton-autodiff-fuzz.gz && chmod +x .wheels/triton-autodiff-fuzz
#   tar -xzf .wheels/fuzz-corpus.tar.gz -C .wheels
#   python3 scripts/fuzz_opt.py --binary .wheels/triton-autodiff-fuzz --corpus .wheels --tries 100000
# and scripts/fuzz_passes.py likewise.
fuzz-opt-binary:
	$(PY) -c 'import sys; sys.path.insert(0, "scripts"); import fuzz_opt; fuzz_opt.build()'
	mkdir -p .wheels
	strip -o .wheels/triton-autodiff-fuzz build/sanitized/bin/triton-autodiff-fuzz
	gzip -9 -f .wheels/triton-autodiff-fuzz
	tar -czf .wheels/fuzz-corpus.tar.gz $(if $(CORPUS),-C $(CORPUS) .,-T /dev/null)

# Every rule, deliberately broken, is noticed by a test.
mutation:
	$(PY) scripts/mutation.py --jobs $(JOBS)

# That compiler in a wheel, in .wheels/mutation/; where it is installed:
#   python3 scripts/mutation.py --installed --journal mutation.jsonl
mutation-wheel:
	mkdir -p .wheels/mutation && rm -f .wheels/mutation/*.whl
	TAD_BUILD_DIR=build/mutation TAD_CMAKE_ARGS=-DTAD_MUTATION=ON \
	  $(PY) -m pip wheel --no-deps -w .wheels/mutation .

# A self-contained wheel in dist/ for PYTHON and any Linux with glibc 2.28.
wheel:
	$(PY) scripts/wheel.py dist

# A wheel for a GPU box without MLIR, in .wheels/ for scripts/gpu.sh.
carry:
	mkdir -p .wheels && rm -f .wheels/triton_autodiff-*.whl
	$(PY) scripts/wheel.py .wheels

# The public packages of the arena, for scripts/arena.sh.
carry-packages:
	mkdir -p .wheels
	$(PY) -m pip download --quiet --no-deps -d .wheels $$(scripts/packages.sh)

gpu-test:
	scripts/gpu.sh

# Tests under compute-sanitizer, on a machine with a GPU. SANITIZE holds its arguments:
# `--seconds 500 --journal build/sanitize.jsonl`, again and again, where time is short.
SANITIZE ?=
sanitize:
	$(PY) scripts/sanitize.py $(SANITIZE)

# Public kernels on a GPU: their authors' backwards, ours, who is right, and the page about it. What
# is there in ARENA is left out; without a network, scripts/arena.sh does a part.
ARENA ?= build/arena
arena:
	PYTHONPATH=benchmarks $(PY) -m arena judge --out $(ARENA) --jobs $(TEST_JOBS)
	PYTHONPATH=benchmarks $(PY) -m arena time --out $(ARENA) --jobs $(TEST_JOBS)
	PYTHONPATH=benchmarks $(PY) -m arena report $(ARENA)

bench:
	if $(PY) -c 'import sys, torch; sys.exit(not torch.cuda.is_available())'; \
	then $(PY) benchmarks/run.py; else $(PY) benchmarks/cpu_vs_interpreter.py; fi
	$(PY) benchmarks/overhead.py

docs:
	$(PY) scripts/rules.py > docs/rules.md
	$(PY) scripts/faults.py --write
	$(PY) benchmarks/results.py > docs/results.md

format:
	git ls-files '*.cpp' '*.h' | xargs clang-format-22 -i
	$(PY) -m ruff format .
	$(PY) -m ruff check --fix .

lint:
	git ls-files '*.cpp' '*.h' | xargs clang-format-22 --dry-run -Werror
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .

# Each C++ file includes what it uses, which the precompiled header hides: some ten minutes, so not
# in CI. FILES names those that have changed.
FILES ?=
self-contained:
	$(PY) scripts/self_contained.py --build $(BUILD) --jobs $(JOBS) $(FILES)

# The public names as mypy and, where it is installed, pyright see them.
types:
	$(PY) -m pytest -q -rs python/test/unit/test_types.py

# A smoke test of the wheel for each supported combination of Python, PyTorch and Triton, in virtual
# environments in build/corners; CORNERS names some of them (scripts/corners.py lists all).
CORNERS ?=
corners:
	$(PY) scripts/corners.py $(CORNERS)

clean:
	rm -rf build dist *.egg-info
