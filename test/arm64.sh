#!/usr/bin/env bash
# arm64.sh: the library cross-built for arm64, and C tests of it under qemu-user:
# the ABI with the sync engine, and forks. One line a case:
#   ok arm64.PROGRAM.CASE | FAIL arm64.PROGRAM.CASE: .. | skip arm64..: why
# `arm64.sh quick` leaves out what takes minutes (make test).
# Needs gcc-aarch64-linux-gnu and qemu-user. Real hardware has not been seen.
set -uo pipefail
cd "$(dirname "$0")/.."
cross=aarch64-linux-gnu-gcc
emulator=$(command -v qemu-aarch64 || command -v qemu-aarch64-static || true)
if ! echo '#include <linux/seccomp.h>' | $cross -fsyntax-only -x c - 2>/dev/null || [ -z "$emulator" ]; then
  why="$cross (gcc-aarch64-linux-gnu, libc6-dev-arm64-cross) and qemu-aarch64 (qemu-user)"
  [ "${PHX_REQUIRE:-}" != all ] || { echo "FAIL arm64: PHX_REQUIRE asks for $why"; exit 1; }
  echo "skip arm64: $why"
  exit 0
fi
unset PHX_REQUIRE # what the emulator has not is no failure
export T_FORK_THERE=1 T_EMULATOR=$emulator # test/c/t_child.c
export QEMU_LD_PREFIX=${QEMU_LD_PREFIX:-/usr/aarch64-linux-gnu}
out=$PWD/build/arm64

# PROGRAM, or PROGRAM.CASE where qemu-user 7.2 cannot run the others: it aborts when a
# child of a process with busy threads makes a thread, and _Fork, clone and children
# without atfork handlers are not recognised (it does nothing for MADV_WIPEONFORK).
entries=(read_write_single batch_sync batch_async_results order_async_write_then_sync_read
  fork_before_first_use.work fork_before_first_use.sixteen
  fork_after_use.a_child_works fork_after_use.children fork_after_use.new_threads_may_call_first
  fork_borrowed.a_child fork_borrowed.the_parents_handles_are_einval
  fork_closed.no_memory_for_the_snapshot fork_facts fork_signals fork_image fork_descriptors)
[ "${1:-}" = quick ] || entries+=(regmem_rules deregmem_rules)
mapfile -t programs < <(printf '%s\n' "${entries[@]%%.*}" | sort -u)

whole="qemu-user checks a whole buffer before a read"
declare -A not_here=(
  [read_write_single.progress_wins_cpu_and_registered]=$whole
  [read_write_single.huge_count_reads_to_the_end]=$whole
  [batch_sync.large_requests_end_where_memory_ends]=$whole
)

failed=0
say() { # VERDICT NAME REST
  if [ "$1" = FAIL ] && [ -n "${not_here[$2]:-}" ]; then
    echo "skip arm64.$2: ${not_here[$2]}"
    return
  fi
  [ "$1" != FAIL ] || failed=1
  echo "$1 arm64.$2${3:+:$3}"
}

if ! log=$({ make --no-print-directory B=build/arm64 GOARCH=arm64 CC=$cross build &&
    make -s -C test/c LIB="$out/libphoenix.so" OUT="$out/test-c" CC=$cross CFLAGS_EXTRA=-DT_CASE_SECONDS=120 \
      "${programs[@]/#/$out/test-c/}" "$out/test-c/libcuda.so.1" samples; } 2>&1); then
  echo "FAIL arm64.build: $(tail -n 5 <<<"$log" | tr '\n' ' ')"
  exit 1
fi
echo "ok arm64.build"
scratch=$(mktemp -d "$out/scratch-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
for entry in "${entries[@]}"; do
  IFS=. read -r program case <<<"$entry"
  LD_LIBRARY_PATH="$out" timeout 600 "$emulator" -E LD_LIBRARY_PATH="$out" "$out/test-c/$program" $case >out.txt 2>err.txt
  status=$?
  while read -r verdict name rest; do
    case $verdict in ok | FAIL | skip) say "$verdict" "$program.${name%:}" "${rest:+ $rest}" ;; esac
  done <out.txt
  case $status in 0 | 1 | 77) ;; *) say FAIL "$program" " exit status $status: $(tail -n 3 err.txt | tr '\n' ' ')" ;; esac
done
exit $failed
