# make serve, make test: all you need. The work is in CMake and scripts/.

PREFIX ?= $(CURDIR)/dist
PORT ?= 8080
JOBS ?= $(shell nproc 2>/dev/null || sysctl -n hw.ncpu)
ARGS ?=

export PATH := $(PATH):$(HOME)/.cargo/bin
program = build/afterglow
python = .venv/bin/python

.PHONY: help build serve test install replay cache-cost bench \
	bench-1b bench-kernels format clean

help:
	@echo 'make serve    install, build and serve the default model' \
	      '(PORT=, ARGS=)'
	@echo 'make test     install, build, run all tests'
	@echo 'make build    install and build $(program)'
	@echo 'make install  put a folder that stands alone at PREFIX='
	@echo 'make replay   five questions over one long prompt, with a restart'
	@echo 'make cache-cost  what the disk cache costs when nothing is shared'
	@echo 'make bench    measure against llama.cpp, into docs/ (ARGS=)'
	@echo 'make bench-1b   the same with a random model of a billion weights'
	@echo 'make bench-kernels  what each kernel reaches (ARGS=)'
	@echo 'make format   format the sources'

build:
	@scripts/setup.sh build
	@scripts/build.sh release afterglow

serve: build
	@scripts/serve.sh $(PORT) $(ARGS)

test:
	@scripts/setup.sh test
	@$(python) scripts/run_tests.py --jobs $(JOBS) $(ARGS)

install: build
	@cmake --install build --prefix '$(PREFIX)'

replay: build
	@$(python) bench/replay.py $(ARGS)

cache-cost: build
	@$(python) bench/cache_cost.py $(ARGS)

bench: build
	@scripts/setup.sh bench
	@$(python) bench/compare.py --write smollm2 \
	  --plot docs/first-token.png $(ARGS)

big_model = build/bench/random-1b.Q4_1.gguf

bench-1b: build
	@scripts/setup.sh bench
	@[ -s $(big_model) ] || \
	  $(python) scripts/make_random_model.py $(big_model)
	@$(python) bench/compare.py --model $(big_model) --rounds 3 \
	  --tests pp512,tg32,tg32@2000 --write random-1b $(ARGS)

bench-kernels:
	@scripts/setup.sh test
	@scripts/build.sh release kernels_bench
	@build/src/kernels/kernels_bench $(ARGS)

format:
	@scripts/format.sh

clean:
	rm -rf build build-*
