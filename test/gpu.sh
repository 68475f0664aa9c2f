#!/usr/bin/env bash
# The GPU programs of bench/gpu work, on the stand-in for libcuda: what they
# prove on a real machine they prove here of everything but the driver.
set -uo pipefail
cd "$(dirname "$0")/.."
for f in /dev/nvidiactl /dev/phxfs_dev0; do
  [ ! -e "$f" ] || { echo "skip gpu programs: the stand-in would hide the driver of $f"; exit 0; }
done
{ make --no-print-directory build build/test-c && make --no-print-directory -C bench/gpu; } >build/gpu.log 2>&1 || { cat build/gpu.log; echo "FAIL gpu programs: they do not build"; exit 1; }
data=$(mktemp -d "${TMPDIR:-/var/tmp}/phx-gpu-XXXXXX")
trap 'rm -rf "$data"' EXIT
status=0
for word in find memory check; do
  if out=$(LD_LIBRARY_PATH=$PWD/build/test-c OPERATIONS=1000 timeout 100 bash build/gpu/run.sh . "$data" "$word" 2>&1); then
    echo "ok gpu $word"
  else
    echo "FAIL gpu $word: exit status $?"
    sed 's/^/  | /' <<<"$out"
    status=1
  fi
done
exit $status
