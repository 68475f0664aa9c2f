#!/usr/bin/env bash
# make soak: the suites again, many times and under other schedules, for what a
# single run would miss. PHX_SOAK=N multiplies the rounds (default 1).
set -euo pipefail
cd "$(dirname "$0")/.."
n=${PHX_SOAK:-1}
echo "== engine and core, race detector, on 1, 2 and 8 processors"
for p in 1 2 8; do GOMAXPROCS=$p go test -race -count=$((5 * n)) ./engine/... ./core/...; done
echo "== ten minutes of random calls, every answer predicted, race detector; the same tests with bugs planted"
PHX_SOAK_SECONDS=$((150 * n)) go test -race -count=1 -timeout $((30 * n))m ./test/statemachine # four parts
test/statemachine/planted.py
echo "== the emulator end to end; 100,000 random requests in three ways"
go test -count=$((5 * n)) ./test/emulator
PHX_THREEWAY=$((100000 * n)) go test -timeout 60m ./test/threeway
echo "== the suites under container filters; arm64 under qemu-user, where the tools are"
python3 test/process/containers.py
test/arm64.sh
echo "== fuzzing"
for target in $(grep -rhoE '^func Fuzz[A-Za-z]+' core engine internal | awk '{print $2}' | sort -u); do
  dir=$(grep -rlE "^func $target\(" core engine internal | head -n1 | xargs dirname)
  go test -run '^$' -fuzz "^$target\$" -fuzztime $((60 * n))s "./$dir"
done
make --no-print-directory build build/test-c
echo "== no call above 3 s on all processors; no collection over 10^7 requests, 10^5 registrations, 10^4 threads"
make --no-print-directory -s -C test/stress/cores
test/stress/cores/cores.sh build $((600 * n))
echo "== forks of parents that never rest, half of them under load"
test/stress/fork/run.sh $((20000 * n))
echo "== the C suite through host staging"
for ((i = 1; i <= n; i++)); do make --no-print-directory check-c-staged STAGED=all; done
echo "== the C suite, repeated"
for ((i = 1; i <= 10 * n; i++)); do make --no-print-directory check-c >build/soak-c.log 2>&1 || { cat build/soak-c.log; exit 1; }; tail -n 1 build/soak-c.log; done
