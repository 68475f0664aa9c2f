#!/usr/bin/env bash
# run.sh [FORKS]: forks of a parent that never rests; without a number a short
# run for CI. Prints one line for each way:
#   ok NAME: totals | FAIL NAME: totals
# Half of the forks happen under 3 busy processes for each processor, when there
# are at least 1,000. What a late child was doing lies in build/stress-fork/miss.PID.
#
# Ways: `exit` ends children in every way; `dlopen` adds a thread of the parent
# in dlopen and dlclose, and its children never call exit(): glibc 2.36 can hang
# there in a child whose parent was in dlclose, library or not (docs/fork.md).
set -euo pipefail
cd "$(dirname "$0")/../../.."
forks=${1:-120}
out=build/stress-fork
lib=${PHX_LIB:-build/libphoenix.so}
seed=${PHX_SEED:-$(date +%s)}
[ -n "${PHX_LIB:-}" ] || make --no-print-directory build >&2
make --no-print-directory -s -C test/stress/fork LIB="$(realpath "$lib")" OUT="$PWD/$out" >&2
busy=()
finish() { for pid in "${busy[@]}"; do kill "$pid" 2>/dev/null || true; done; }
trap finish EXIT
failed=0

# way NAME FORKS FLAGS...: in fresh parents of at most 500 forks each.
way() {
  local name=$1 left=$2 line bad=0 text n
  declare -A sum=()
  shift 2
  while [ "$left" -gt 0 ]; do
    n=$((left < 500 ? left : 500)) left=$((left - n)) seed=$((seed + 1))
    text=$("$out/stress" -n "$n" -s "$seed" -m "$out" -p "$out/plug.so" "$@") || bad=1
    for line in $text; do sum[${line%%=*}]=$((${sum[${line%%=*}]:-0} + ${line#*=})); done
    case $text in *forks=*) ;; *) bad=1; echo "  the parent of seed $seed died" >&2 ;; esac
  done
  unset 'sum[seed]'
  text=$(for key in "${!sum[@]}"; do echo -n "$key=${sum[$key]} "; done | tr ' ' '\n' | sort | tr '\n' ' ')
  if [ $bad = 0 ]; then echo "ok fork_stress.$name: $text"; else
    echo "FAIL fork_stress.$name: $text(last seed $seed)"
    failed=1
  fi
}

quiet=$forks
[ "$forks" -lt 1000 ] || quiet=$((forks / 2))
way exit $((quiet / 2))
way dlopen $((quiet / 2)) -x -c srmtxpdl
if [ "$quiet" != "$forks" ]; then
  for ((i = 0; i < 3 * $(nproc); i++)); do
    while :; do :; done &
    busy+=($!)
  done
  way exit_under_load $((quiet / 2))
  way dlopen_under_load $((quiet / 2)) -x -c srmtxpdl
fi
exit $failed
