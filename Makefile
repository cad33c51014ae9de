# The command menu. `make demo` and `make test` set up all they need on a fresh Debian 12 machine.
SHELL := /bin/bash
.DEFAULT_GOAL := help
CASES ?= 1000
SEED ?= 1
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)
PACKAGES := g++ cmake ninja-build ccache mold python3 python3-venv python3-dev libfmt-dev nlohmann-json3-dev \
            libgtest-dev libgmock-dev libcli11-dev clang-19 clang-tidy-19 clang-format-19 \
            libclang-rt-19-dev pkg-config libjpeg62-turbo-dev libpng-dev libdeflate-dev \
            libwebp-dev libsndfile1-dev libsoxr-dev zlib1g-dev libzstd-dev libsimdjson-dev libhwy-dev libgloo-dev
TORCH_VERSION := 2.13.0
# Nothing below is one of several processes, whatever started it.
unexport RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE TF_CONFIG SLURM_STEP_ID OMPI_COMM_WORLD_RANK \
         OMPI_COMM_WORLD_SIZE OMPI_COMM_WORLD_LOCAL_RANK JOB_COMPLETION_INDEX
export CMAKE_BUILD_PARALLEL_LEVEL ?= $(shell nproc)

help:  ## lists the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

.PHONY: help setup demo test everything check build compile python test-python test-torch test-frameworks wheel stubs train \
        test-train asan tsan processes page property long scenarios scenarios-off scenarios-smoke mutants mutants-smoke fuzz \
        check-limits check-hardening bench bench-python bench-train bench-page rivals lint tidy format docs clean consumer consumer-whole announce-demo announce-test
.NOTPARALLEL:

# What apt-get prints is shown only when it fails.
setup:
	@dpkg -s $(PACKAGES) >/dev/null 2>&1 || { echo "setup: installing packages with apt-get"; log=$$(mktemp); \
	  { $(SUDO) apt-get update -qq && DEBIAN_FRONTEND=noninteractive $(SUDO) apt-get install -y -qq \
	    --no-install-recommends $(PACKAGES); } >$$log 2>&1 || { cat $$log; exit 1; }; rm -f $$log; }

# torch goes first into the environment: what needs it would bring another build of it.
.venv/torch: | setup
	@[ -x .venv/bin/python ] || python3 -m venv .venv
	@.venv/bin/python -c 'import torch; assert torch.__version__.startswith("$(TORCH_VERSION)")' 2>/dev/null || \
	  .venv/bin/pip install -q --disable-pip-version-check torch==$(TORCH_VERSION)
	@touch $@
TORCH = -DPENSTOCK_TRAIN=ON -DCMAKE_PREFIX_PATH="$$(.venv/bin/python -W ignore -c 'import torch; print(torch.utils.cmake_prefix_path)')"

announce-demo:
	@echo "make demo: about 9 minutes the first time on two cores (packages, torch, release build), 10 s after that"

announce-test:
	@echo "make test: about 35 minutes the first time on two cores, less with a warm ccache; about 6 GB of disk"

demo: announce-demo setup .venv/torch  ## trains on uneven images, one of them broken, on 4 replicas; kills the run, resumes it and checks the result
	@cmake --preset release $(TORCH) >/dev/null 2>&1 && cmake --build --preset release -- --quiet
	@python3 tools/demo.py --command build/release/bin/penstock

train: setup .venv/torch  ## the trainer and `penstock train` (dev build)
	@cmake --preset dev $(TORCH) >/dev/null 2>&1
	cmake --build --preset dev -- --quiet penstock_train_tests penstock_train_command penstock_command \
	  penstock_like_torch penstock_workers train_examples

test-train: train  ## the tests of the trainer: in one process, in several, and against plain torch
	build/dev/train/penstock_train_tests --gtest_brief=1
	.venv/bin/python -c 'import numpy' 2>/dev/null || .venv/bin/pip install -q 'numpy>=2,<3'
	.venv/bin/python train/tests/like_torch.py --program build/dev/train/penstock_like_torch
	python3 train/tests/workers.py --program build/dev/train/penstock_workers --torchrun .venv/bin/torchrun
	python3 train/tests/command.py --command build/dev/bin/penstock --torchrun .venv/bin/torchrun
	python3 train/tests/examples.py --folder build/dev/train/examples

build: setup
	cmake --preset dev >/dev/null && cmake --build --preset dev -- --quiet property_driver penstock_command

test: announce-test lint compile consumer property processes page train docs test-python test-torch test-train scenarios-smoke asan tsan check-limits check-hardening  ## what CI runs; `make everything` runs the rest too
	@echo "make test: all passed"

everything: test consumer-whole test-frameworks scenarios-off mutants wheel fuzz long tidy  ## all tests: hours, 20 GB
	@echo "make everything: all passed"

compile: build  ## programs that must not compile, and the messages that the compiler must print
	ctest --preset dev --no-tests=error -R '^compile[.]'

check: setup lint  ## fast: lint, dev build, unit tests without sanitizers
	cmake --preset dev >/dev/null && cmake --build --preset dev -- --quiet
	ctest --preset dev -j 2

.venv/bin/pytest: | .venv/torch
	@[ -x .venv/bin/python ] || python3 -m venv .venv
	@.venv/bin/pip install -q --disable-pip-version-check 'nanobind>=3.1,<4' 'numpy>=2,<3' 'pytest>=7'

python: setup .venv/bin/pytest  ## the Python package, importable in .venv
	@.venv/bin/python -c 'import cloudpickle' 2>/dev/null || \
	  .venv/bin/pip install -q --disable-pip-version-check cloudpickle
	cmake --preset dev -DPENSTOCK_PYTHON=ON -DPython_EXECUTABLE=$(CURDIR)/.venv/bin/python >/dev/null
	cmake --build --preset dev -- --quiet penstock_python penstock_command
	@.venv/bin/python -c "import sysconfig, pathlib; pathlib.Path(sysconfig.get_path('purelib'), \
	  'penstock.pth').write_text('$(CURDIR)/build/dev/python\n')"

test-python: python  ## the tests of the Python package
	.venv/bin/python -m pytest python/tests

test-torch: python  ## the tests with torch itself, in the torch of .venv
	.venv/bin/python $(FRAMEWORK_PYTEST) $(FRAMEWORK_TESTS)/test_torch*.py $(FRAMEWORK_TESTS)/test_pages.py

# Environments with the real libraries; torch goes first, since what needs it would take another.
FRAMEWORKS := .cache/frameworks
$(FRAMEWORKS)/torch/ready: | .venv/bin/pytest
	@df -Pk . | awk 'NR == 2 && $$4 < 9000000 { print "test-frameworks: 9 GB of disk are needed, " \
	  "there are " int($$4 / 1e6); exit 1 }'
	.venv/bin/python -m venv $(@D)
	$(@D)/bin/pip install -q --disable-pip-version-check torch==2.13.0 'numpy>=2,<3' 'pytest>=7'
	$(@D)/bin/pip install -q --disable-pip-version-check 'keras>=3.15,<4' jax cloudpickle
	@touch $@

$(FRAMEWORKS)/tensorflow/ready: | .venv/bin/pytest
	.venv/bin/python -m venv $(@D)
	$(@D)/bin/pip install -q --disable-pip-version-check tensorflow-cpu 'keras>=3.15,<4' \
	  'numpy>=2,<3' 'pytest>=7' cloudpickle
	@touch $@

$(FRAMEWORKS)/hf/ready: | .venv/bin/pytest
	.venv/bin/python -m venv $(@D)
	$(@D)/bin/pip install -q --disable-pip-version-check torch==$(TORCH_VERSION) 'numpy>=2,<3' 'pytest>=7'
	$(@D)/bin/pip install -q --disable-pip-version-check datasets tokenizers transformers pyarrow polars duckdb cloudpickle
	@touch $@

$(FRAMEWORKS)/records/ready: | .venv/bin/pytest
	.venv/bin/python -m venv $(@D)
	$(@D)/bin/pip install -q --disable-pip-version-check torch==$(TORCH_VERSION) 'numpy>=2,<3' 'pytest>=7'
	$(@D)/bin/pip install -q --disable-pip-version-check webdataset pandas pyarrow pillow mosaicml-streaming litdata zstd cloudpickle
	@touch $@

FRAMEWORK_TESTS := python/tests/frameworks
FRAMEWORK_PYTEST := -m pytest -W ignore::DeprecationWarning -W ignore::UserWarning:torch
test-frameworks: python $(FRAMEWORKS)/torch/ready $(FRAMEWORKS)/tensorflow/ready $(FRAMEWORKS)/hf/ready $(FRAMEWORKS)/records/ready  ## torch, Keras on its three backends, Hugging Face, files of TensorFlow and webdataset (11 GB); `make test` runs only torch's
	@for backend in torch jax tensorflow; do \
	  environment=$(FRAMEWORKS)/torch; [ $$backend = tensorflow ] && environment=$(FRAMEWORKS)/tensorflow; \
	  echo "test-frameworks: Keras on $$backend"; \
	  KERAS_BACKEND=$$backend PYTHONPATH=$(CURDIR)/build/dev/python $$environment/bin/python \
	    $(FRAMEWORK_PYTEST) $(FRAMEWORK_TESTS)/test_keras*.py $(FRAMEWORK_TESTS)/test_pages.py || exit 1; done
	@echo "test-frameworks: torch"
	@PYTHONPATH=$(CURDIR)/build/dev/python $(FRAMEWORKS)/torch/bin/python $(FRAMEWORK_PYTEST) \
	  $(FRAMEWORK_TESTS)/test_torch*.py
	@echo "test-frameworks: Hugging Face"
	@PYTHONPATH=$(CURDIR)/build/dev/python $(FRAMEWORKS)/hf/bin/python $(FRAMEWORK_PYTEST) \
	  $(FRAMEWORK_TESTS)/test_hf*.py $(FRAMEWORK_TESTS)/test_torch_ragged.py
	@echo "test-frameworks: files of TensorFlow"
	@PYTHONPATH=$(CURDIR)/build/dev/python $(FRAMEWORKS)/tensorflow/bin/python $(FRAMEWORK_PYTEST) \
	  $(FRAMEWORK_TESTS)/test_tf_records.py
	@echo "test-frameworks: files of webdataset, pandas, Streaming and LitData"
	@PYTHONPATH=$(CURDIR)/build/dev/python $(FRAMEWORKS)/records/bin/python $(FRAMEWORK_PYTEST) \
	  $(FRAMEWORK_TESTS)/test_records.py
	@echo "test-frameworks: all passed"

wheel: setup  ## a wheel that runs with nothing installed, and its test (PYTHONS="python3.10 python3.13")
	python3 tools/wheel.py $(addprefix --python ,$(PYTHONS))

stubs: python  ## writes _native.pyi, for type checkers
	.venv/bin/python tools/stubs.py

asan: setup  ## all C++ tests under AddressSanitizer and UBSan
	cmake --preset asan >/dev/null && cmake --build --preset asan -- --quiet penstock_tests
	tools/shards.sh build/asan/tests/penstock_tests --gtest_brief=1

tsan: setup  ## everything with threads under ThreadSanitizer, with injected yields
	cmake --preset tsan >/dev/null && cmake --build --preset tsan -- --quiet penstock_tests property_driver
	TSAN_OPTIONS=halt_on_error=1 tools/shards.sh build/tsan/tests/penstock_tests --gtest_brief=1
	TSAN_OPTIONS=halt_on_error=1 python3 tests/property/run.py --driver build/tsan/tests/property_driver --cases 150 --seed 7 --jobs 2

processes: build  ## the command as a process: output, errors, exit codes, Ctrl-C
	python3 tests/command_test.py --command build/dev/bin/penstock
	python3 tests/interrupt_test.py --command build/dev/bin/penstock
	python3 tests/report_test.py --command build/dev/bin/penstock

page: build  ## the page of reports in headless Chromium; SHOTS=FOLDER writes screenshots
	@command -v chromium >/dev/null || { $(SUDO) apt-get update -qq >/dev/null && \
	  DEBIAN_FRONTEND=noninteractive $(SUDO) apt-get install -y -qq --no-install-recommends chromium >/dev/null; }
	python3 tests/page_test.py --command build/dev/bin/penstock $(addprefix --shots ,$(SHOTS))

property: build  ## random pipelines against the reference model (CASES=1000 SEED=1)
	python3 tests/property/run.py --driver build/dev/tests/property_driver --cases $(CASES) --seed $(SEED) --jobs 2

long: check  ## the long versions: 100,000 cases of the property test, more threads at every position
	$(MAKE) property CASES=100000
	PENSTOCK_LONG=1 ctest --preset dev -j 2
	PENSTOCK_LONG=1 $(MAKE) processes
	PENSTOCK_LONG=1 $(MAKE) test-python
	PENSTOCK_LONG=1 $(MAKE) test-train

scenarios: python  ## runs the programs of the articles; writes docs/scenarios.md
	cmake --preset dev >/dev/null && cmake --build --preset dev -- --quiet penstock_tests
	python3 tools/scenarios.py

scenarios-off: python  ## each scenario with its feature switched off, which must make it fail
	cmake --preset dev >/dev/null && cmake --build --preset dev -- --quiet penstock_tests
	python3 tools/scenarios.py --off

scenarios-smoke: python  ## three rows of scenarios-off, Python only
	python3 tools/scenarios.py --off --python-only --rows b_10_batches_4_replicas,c_cache_partial,b_steps_below_pass

mutants: setup .venv/torch  ## one-line bugs that a test must detect, in every part (ONLY=part of a name)
	python3 tests/mutants/run.py $(addprefix --only ,$(ONLY))

FUZZ_TARGETS := state plan folder_index megatron image png jpeg audio tfrecord tar compressed npy rows csv jsonl mds litdata trace
fuzz: setup  ## each parser for SECONDS=30
	cmake --preset fuzz >/dev/null && cmake --build --preset fuzz -- --quiet
	@build/fuzz/fuzz/write_seeds build/fuzz/seeds && mkdir -p $(addprefix build/fuzz/seeds/,$(FUZZ_TARGETS))
	@for target in $(FUZZ_TARGETS); do mkdir -p build/fuzz/corpus/$$target && \
	  build/fuzz/fuzz/$${target}_fuzz -max_total_time=$(or $(SECONDS),30) -max_len=4096 \
	    build/fuzz/corpus/$$target build/fuzz/seeds/$$target \
	    $$(ls -d fuzz/corpus/$$target 2>/dev/null) || exit 1; done

check-limits: setup  ## limits in milliseconds and megabytes
	@cmake --preset bench >/dev/null && cmake --build --preset bench -- --quiet limits
	build/bench/bench/limits

check-hardening: setup  ## stack protectors, fortified calls and RELRO, read from a release build
	@cmake --preset bench >/dev/null && cmake --build --preset bench -- --quiet limits penstock_command
	python3 tests/hardening_test.py build/bench/bin/penstock

bench: setup  ## ratios to NumPy and to bare threads, medians of 7 interleaved rounds
	@cmake --preset bench >/dev/null && cmake --build --preset bench -- --quiet
	@[ -x .venv/bin/python ] || python3 -m venv .venv
	@.venv/bin/python -c 'import numpy' 2>/dev/null || .venv/bin/pip install -q 'numpy>=2,<3'
	.venv/bin/python bench/engine/run.py --bench build/bench/bench/engine_bench

bench-python: setup .venv/bin/pytest  ## Python against C++, and W4 against plain loops: ROUNDS=5, DATA=images of rivals
	@.venv/bin/python -c 'import cloudpickle' 2>/dev/null || \
	  .venv/bin/pip install -q --disable-pip-version-check cloudpickle
	@cmake --preset bench -DPENSTOCK_PYTHON=ON -DPython_EXECUTABLE=$(CURDIR)/.venv/bin/python >/dev/null
	@cmake --build --preset bench -- --quiet penstock_python penstock_images engine_bench
	.venv/bin/python bench/python/run.py --bench build/bench/bench --rounds $(or $(ROUNDS),5) \
	  --data "$(or $(DATA),$(firstword $(wildcard .cache/rivals/data-*)))"

bench-train: setup .venv/torch  ## fit against a plain LibTorch loop: resnet18 on two replicas, ROUNDS=7
	@cmake --preset release $(TORCH) >/dev/null 2>&1 && cmake --build --preset release -- --quiet train_bench
	OMP_NUM_THREADS=1 build/release/train/train_bench $(or $(ROUNDS),7)

rivals: setup .venv/bin/pytest  ## images against other loaders: W1 and W2, ROUNDS=7 interleaved rounds
	@dpkg -s libspng-dev mate-backgrounds plasma-workspace-wallpapers >/dev/null 2>&1 || \
	  $(SUDO) apt-get install -y -qq --no-install-recommends libspng-dev mate-backgrounds \
	    plasma-workspace-wallpapers
	@cmake --preset bench -DPENSTOCK_PYTHON=ON -DPython_EXECUTABLE=$(CURDIR)/.venv/bin/python >/dev/null
	@cmake --build --preset bench -- --quiet reference penstock_images penstock_python
	.venv/bin/python bench/rivals/run.py --rounds $(or $(ROUNDS),7)

bench-page:  ## docs/benchmarks.md and its charts from bench/results
	python3 tools/bench_page.py

lint: setup  ## format, layers and house rules
	tools/lint.sh

tidy: setup  ## lint, and clang-tidy over everything
	tools/lint.sh full

format: setup
	clang-format-19 -i $$(git ls-files -co --exclude-standard '*.cc' '*.h')

consumer: build  ## a project outside the tree: the installed library by find_package and pkg-config; compiled as a subdirectory
	rm -rf build/consumer && cmake --install build/dev --prefix build/consumer/installed >/dev/null
	cmake -S tests/consumer -B build/consumer/package -G Ninja \
	  -DCMAKE_PREFIX_PATH=$(CURDIR)/build/consumer/installed >/dev/null
	cmake --build build/consumer/package -- --quiet && build/consumer/package/consumer
	PKG_CONFIG_PATH=$$(dirname $$(find $(CURDIR)/build/consumer/installed -name penstock.pc)) && export PKG_CONFIG_PATH && \
	  c++ tests/consumer/main.cc $$(pkg-config --cflags --libs --static penstock) -o build/consumer/by_pkg_config && \
	  build/consumer/by_pkg_config
	cmake -S tests/consumer -B build/consumer/subdirectory -G Ninja -DPENSTOCK_SOURCE=$(CURDIR) >/dev/null
	cmake --build build/consumer/subdirectory -- --quiet $(or $(CONSUMER),CMakeFiles/consumer.dir/main.cc.o)

consumer-whole:  # as a subdirectory the library is built once more
	$(MAKE) consumer CONSUMER=consumer && build/consumer/subdirectory/consumer

docs: build train  ## every code block of README and docs, executed
	python3 tools/doc_blocks.py --build build/dev

clean:
	rm -rf build
