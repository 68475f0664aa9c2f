#!/usr/bin/env bash
# The benchmark works: every mode measures the library, the baseline and the
# ceiling and finds the right data, and compare prints its table. Numbers are
# not judged here.
set -uo pipefail
cd "$(dirname "$0")/.."
if ! make --no-print-directory bench-tools >build/bench.log 2>&1; then
  grep -q 'need liburing' build/bench.log && { echo "skip bench: liburing-dev is not installed"; exit 0; }
  cat build/bench.log
  echo "FAIL bench: it does not build"
  exit 1
fi
data=$(mktemp -d "${TMPDIR:-/var/tmp}/phx-bench-XXXXXX")
trap 'rm -rf "$data"' EXIT
status=0
run() { # NAME COMMAND...: exit status 77 is a skip
  local name=$1 out rc
  shift
  out=$("$@" 2>&1) && rc=0 || rc=$?
  case $rc in
    0) echo "ok bench $name" ;;
    77) echo "skip bench $name: ${out##*$'\n'}" ;;
    *) echo "FAIL bench $name: exit status $rc"; sed 's/^/  | /' <<<"$out"; status=1 ;;
  esac
}
driver() { build/bench/phx_bench --lib "$1" --file "$data/file" --span 4M --iterations 3 "${@:2}"; }
modes() { # LIBRARY: everything the yardsticks and the library have in common
  driver "$1" --count 8 -v && driver "$1" --count 300 --write --pattern sequential -v
}
more() {
  modes "$1" && driver "$1" -v --mode single && driver "$1" --mode async --count 32 -v --registered --pattern scattered &&
    driver "$1" --mode submit --count 4 && driver "$1" --mode threads --threads 3 --count 4 -v &&
    driver "$1" --mode regmem --live 10 && driver "$1" --mode load --count 8 &&
    driver "$1" --count 2 --size 1M --sparse && driver "$1" --mode huge --sparse --size 1G
}
tabled() { # a table, with a cell of every kind but those that need gigabytes
  for cell in "4K, n=8" "threads (IO/s)" "with 1 live"; do
    bench/compare --data "$data" --rounds 2 --seconds 0.01 --save "$data/r.json" "$cell" | tee "$data/table" || return 1
    grep -qE '^(4K|with|skip)' "$data/table" || return 1
  done
}
run "library" more build/bench/libphoenix.so
run "baseline" more build/bench/libbaseline.so
run "ceiling" modes build/bench/libceiling.so
run "O_DIRECT" driver build/bench/libphoenix.so --direct --count 8 -v
run "table" tabled
exit $status
