#!/usr/bin/env bash
# cores.sh [BUILD [SECONDS]]: no call takes longer than 3 s, however many processors
# there are (docs/architecture.md, "No stop-the-world"). Half of the time in one process,
# the other half in fresh processes of a second or two each; beside them the test that
# Go never collects, at its full size. Prints
#   ok cores.NAME: totals | FAIL cores.NAME: totals
# BUILD (build) holds libphoenix.so, inject/libphoenix.so, test-c/no_stop_the_world and
# stress-cores/cores (make build build/test-c && make -C test/stress/cores): nothing is
# built here. SECONDS: 60.
set -uo pipefail
build=$(realpath "${1:-$(dirname "$0")/../../../build}")
seconds=${2:-60}
cores=$build/stress-cores/cores
scratch=$(mktemp -d)
failed=0
aside=
finish() { [ -z "$aside" ] || kill "$aside" 2>/dev/null || true; rm -rf "$scratch"; }
trap finish EXIT
say() { # STATUS NAME TEXT
  if [ "$1" = 0 ]; then echo "ok cores.$2: $3"; else echo "FAIL cores.$2: $3"; failed=1; fi
}

(cd "$scratch" && PHX_FULL=1 exec "$build/test-c/no_stop_the_world" no_collection) >"$scratch/gc" 2>&1 &
aside=$!

text=$("$cores" $((seconds / 2)))
say $? one_process "$text"

runs=0 calls=0 threads=0 slowest=0 which=none bad=0 end=$((SECONDS + seconds / 2))
while [ $SECONDS -lt $end ]; do
  runs=$((runs + 1))
  text=$("$cores" $((1 + runs % 2))) || { bad=1; echo "  run $runs: ${text:-status $?}"; }
  for word in $text; do
    case $word in
      calls=*) calls=$((calls + ${word#*=})) ;;
      threads=*) threads=$((threads + ${word#*=})) ;;
      slowest=*) [ "${word#*=}" -le "$slowest" ] || { slowest=${word#*=}; which=${text##*call=}; which=${which% wrong=*}; } ;;
    esac
  done
done
say $bad fresh_processes "processes=$runs calls=$calls threads=$threads slowest=$slowest call=$which"

wait "$aside"
status=$?
aside=
say $status no_collection "$(tr '\n' ' ' <"$scratch/gc")"
exit $failed
