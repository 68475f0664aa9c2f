# libphoenix: everything is reached from here. `make` alone prints the targets.
SHELL       := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PREFIX  ?= /usr/local
DESTDIR ?=
LIBDIR  ?= $(PREFIX)/lib
# Vendor whose devices are used when the environment variable PHXFS_VENDOR is
# not set at run time: NVIDIA, AMD, ASCEND or HOST. All are compiled in.
PHXFS_VENDOR ?= NVIDIA
PYTHON  ?= python3
GO      ?= go
CC      ?= gcc

B       := build
# A folder on the disk that is measured.
BENCH_DATA ?= /var/tmp
TOP     := $(CURDIR)
VERSION := $(shell sed -n 's/^const Version = "\(.*\)"/\1/p' internal/version/version.go)
SOURCES := go.mod go.sum $(shell find cabi core engine connectors internal cmd -name '*.go' -o -name '*.[ch]' -o -name '*.s' -o -name '*.map' -o -name '*.ld') $(wildcard include/*.h)

# INJECT=1: the test build, which can be told to panic (cabi/inject.h).
MAP     := $(if $(INJECT),$(TOP)/$(B)/inject.map,$(TOP)/cabi/phoenix.map)

comma   := ,
# What the .so is linked with; #cgo LDFLAGS may not carry these.
EXTLD   := -Wl,--version-script=$(MAP) -Wl,-soname,libphoenix.so -Wl,-T,$(TOP)/cabi/lazy.ld -Wl,-z,defs -Wl,-z,now -Wl,--wrap=pthread_key_create -Wl,--wrap=pthread_create$(if $(INJECT), -Wl$(comma)--wrap=crosscall2)
GOTAGS  := $(if $(PHX_GO_ANY),phx_go_any) $(if $(INJECT),phx_inject)
LIBLD   := -X libphoenix/connectors/registry.defaultVendor=$(PHXFS_VENDOR)
GOBUILD  = CGO_ENABLED=1 $(GO) build -trimpath -tags '$(GOTAGS)'
unexport PHXFS_VENDOR
# go-nvml wraps functions that its own header calls deprecated.
export CGO_CFLAGS ?= -O2 -g -Wno-deprecated-declarations

##@ Use
help: ## print this list
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: toolchain vendor-name $(B)/libphoenix.so $(B)/phx ## build/libphoenix.so and build/phx

demo: deps build ## build, then load a 512 MiB file into a registered buffer, in C and in Python
	./examples/demo.sh

test: deps ## everything CI runs: checks, and the Go, C and Python suites
	$(PYTHON) test/all.py

install: build ## install library, headers and phx under DESTDIR/PREFIX
	install -d $(DESTDIR)$(LIBDIR) $(DESTDIR)$(PREFIX)/include $(DESTDIR)$(PREFIX)/bin
	install -m 755 $(B)/libphoenix.so $(DESTDIR)$(LIBDIR)/libphoenix.so
	install -m 644 include/phoenix.h include/phxfs_ioctl.h include/common.h $(DESTDIR)$(PREFIX)/include/
	install -m 755 $(B)/phx $(DESTDIR)$(PREFIX)/bin/phx

uninstall: ## remove what install put there
	rm -f $(DESTDIR)$(LIBDIR)/libphoenix.so $(DESTDIR)$(PREFIX)/bin/phx
	rm -f $(addprefix $(DESTDIR)$(PREFIX)/include/,phoenix.h phxfs_ioctl.h common.h)

##@ Work on it
check: build ## gofmt, vet, staticcheck, import rules, headers, Go unit tests (2 minutes)
	@out=$$(gofmt -l $$(git ls-files '*.go' 2>/dev/null || find . -name '*.go')); [ -z "$$out" ] || { echo "not gofmt-clean:"; echo "$$out"; exit 1; }
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	CC=$(CC) test/header/run.sh
	$(GO) test ./...

check-c: build $(B)/test-c ## the C suite on the host device (FILTER=name for a part)
	$(PYTHON) test/c/run.py --lib $(B)/libphoenix.so --bin $(B)/test-c $(FILTER)

check-c-staged: build $(B)/test-c ## the C suite on the host device, through host staging
	$(PYTHON) test/c/run.py --lib $(B)/libphoenix.so --bin $(B)/test-c --staged $(or $(STAGED),most) $(FILTER)

check-emulated: build $(B)/test-c ## the C suite on emulated devices (FILTER as for check-c)
	$(PYTHON) test/c/run.py --lib $(B)/libphoenix.so --bin $(B)/test-c --emulate $(B)/phx $(FILTER)

check-py: build ## the Python suite on the host device
	$(PYTHON) test/run_pytest.py $(if $(FILTER),-k $(FILTER)) test/python

check-py-emulated: build $(B)/test-c ## the Python suite on emulated devices
	$(PYTHON) test/run_pytest.py --emulate $(B)/phx $(if $(FILTER),-k $(FILTER)) test/python

check-containers: build $(B)/test-c ## the C and Python suites under container seccomp filters
	$(PYTHON) test/process/containers.py --build $(B)

soak: build ## the long campaigns: races, repeats, many rounds
	test/soak.sh

bench: deps bench-tools ## measure against the yardsticks: table, bench/RESULTS.md, plots (FILTER=cell)
	bench/compare --data $(BENCH_DATA) --save $(B)/bench/result.json "$(FILTER)"
	@[ -n "$(FILTER)" ] || $(PYTHON) bench/render.py $(B)/bench/result.json

bench-carry: deps bench-tools ## build/carry: what measuring on another machine needs
	rm -rf $(B)/carry && mkdir -p $(B)/carry
	cp bench/compare bench/scale bench/*.py $(B)/bench/*.so $(addprefix $(B)/bench/,phx phx_bench commit) $(B)/carry/
	cp bench/carry.sh $(B)/carry/run.sh

bench-scale: deps bench-tools $(B)/test-c ## throughput and CPU by helpers, callers, batch size; 100 GiB; 10^7 requests
	bench/scale --data $(BENCH_DATA) --save $(B)/bench/scale.json
	$(PYTHON) bench/render.py $(B)/bench/scale.json

bench-go: build ## Go benchmarks of the engine, the range table and registration
	$(GO) test -run '^$$' -bench . -benchmem ./engine ./core

asan: deps ## the C suite against an AddressSanitizer build
	$(MAKE) B=$(B)/asan GOASAN=1 PHXFS_VENDOR=$(PHXFS_VENDOR) build inject
	$(MAKE) -C test/c LIB=$(TOP)/$(B)/asan/libphoenix.so OUT=$(TOP)/$(B)/asan/test-c CFLAGS_EXTRA=-fsanitize=address
	$(PYTHON) test/c/run.py --lib $(B)/asan/libphoenix.so --bin $(B)/asan/test-c --asan $(FILTER)

clean: ## remove build/
	rm -rf $(B)

deps: ## system packages of the tests (installs only as root on an apt system)
	@./test/deps.sh

# ---- rules ----

toolchain:
	@want=go$$(sed -n 's/^go //p' go.mod); have=$$($(GO) env GOVERSION); \
	if [ "$$want" != "$$have" ] && [ -z "$(PHX_GO_ANY)" ]; then \
	  echo "this library is pinned to $$want (go.mod) and $(GO) is $$have: what a forked child may do depends on the runtime's internals. PHX_GO_ANY=1 builds anyway, with fork fail-closed." >&2; exit 1; fi

vendor-name:
	@case "$(PHXFS_VENDOR)" in NVIDIA|AMD|ASCEND|HOST) ;; *) echo "PHXFS_VENDOR is NVIDIA, AMD, ASCEND or HOST, not '$(PHXFS_VENDOR)'" >&2; exit 1;; esac
	@mkdir -p $(B); echo '$(PHXFS_VENDOR) $(GOTAGS)' | cmp -s - $(B)/.config || echo '$(PHXFS_VENDOR) $(GOTAGS)' >$(B)/.config

$(B)/.config: vendor-name

$(B)/libphoenix.so: $(SOURCES) $(B)/.config $(if $(INJECT),$(B)/inject.map)
	$(GOBUILD) -buildmode=c-shared $(if $(GOASAN),-asan) -ldflags "$(LIBLD) -extldflags '$(EXTLD)'" -o $@ ./cabi
	@rm -f $(B)/libphoenix.h # the generated header is not the public one
	@test/linked.sh $@ $(MAP) || { rm -f $@; exit 1; }

$(B)/inject.map: cabi/phoenix.map Makefile
	sed 's/^ *local:/    phxfs_inject;\n    phxfs_inject_left;\n    phxfs_inject_memory;\n    phxfs_inject_counts;\n&/' $< >$@

$(B)/phx: $(SOURCES)
	CGO_ENABLED=1 $(GO) build -trimpath -ldflags "$(LIBLD) -extldflags -Wl,-z,lazy" -o $@ ./cmd/phx # lazy: go-nvml loads NVML when it is asked

bench-tools: build
	$(MAKE) -C bench OUT=$(TOP)/$(B)/bench
	@cp $(B)/libphoenix.so $(B)/phx $(B)/bench/
	@git describe --always --dirty >$(B)/bench/commit 2>/dev/null || echo unknown >$(B)/bench/commit

inject: ## build/inject/libphoenix.so, which tests can tell to panic
	@$(MAKE) --no-print-directory B=$(B)/inject INJECT=1 PHXFS_VENDOR=$(PHXFS_VENDOR) vendor-name $(B)/inject/libphoenix.so

$(B)/test-c: $(B)/libphoenix.so inject FORCE
	$(MAKE) -C test/c LIB=$(TOP)/$(B)/libphoenix.so OUT=$(TOP)/$@

FORCE:
.PHONY: inject help build demo test check check-c check-c-staged check-emulated check-py check-py-emulated check-containers soak bench bench-tools bench-carry bench-scale bench-go install uninstall asan deps clean toolchain vendor-name FORCE
