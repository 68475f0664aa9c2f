#!/usr/bin/env bash
# arm64.sh: the library cross-built for arm64, and C tests of it under qemu-user:
# the ABI with the sync engine, and forks. One line a case:
#   ok arm64.PROGRAM.CASE | FAIL arm64.PROGRAM.CASE: .. | skip arm64..: why
# Needs gcc-aarch64-linux-gnu and qemu-user. Real hardware has not been seen.
set -uo pipefail
cd "$(dirname "$0")/.."
cross=aarch64-linux-gnu-gcc
emulator=$(command -v qemu-aarch64 || command -v qemu-aarch64-static || true)
if ! command -v $cross >/dev/null || [ -z "$emulator" ]; then
  echo "skip arm64: $cross (gcc-aarch64-linux-gnu) and qemu-aarch64 (qemu-user)"
  exit 0
fi
export T_FORK_THERE=1 # test/c/t_child.c
export QEMU_LD_PREFIX=${QEMU_LD_PREFIX:-/usr/aarch64-linux-gnu}
out=$PWD/build/arm64
programs=(read_write_single batch_sync batch_async_results regmem_rules deregmem_rules
  order_async_write_then_sync_read fork_before_first_use fork_after_use fork_borrowed fork_facts fork_closed
  fork_signals fork_image)

# What qemu-user 7.2 does otherwise than a kernel.
aborts="qemu-user aborts when a child of a process with threads makes a thread"
declare -A not_here=(
  [read_write_single.progress_wins_cpu_and_registered]="qemu-user checks a whole buffer before a read"
  [read_write_single.huge_count_reads_to_the_end]="qemu-user checks a whole buffer before a read"
  [batch_sync.large_requests_end_where_memory_ends]="qemu-user checks a whole buffer before a read"
  [fork_after_use.forks_while_threads_are_inside]="$aborts"
  [fork_borrowed.the_parents_users_are_not_the_childs]="$aborts"
  [fork_closed.no_page_that_fork_empties]="qemu-user accepts MADV_WIPEONFORK and does nothing"
  [fork_closed.raw_clone_and__Fork_are_refused_at_once]="qemu-user accepts MADV_WIPEONFORK and does nothing"
  [fork_before_first_use.no_thread_has_started_in_the_parent]="qemu-user has threads of its own"
)
spawns="qemu-user cannot run an arm64 program by execve"

failed=0
say() { # VERDICT NAME REST
  case $1 in
    FAIL)
      if [ -n "${not_here[$2]:-}" ]; then echo "skip arm64.$2: ${not_here[$2]}"; return; fi
      case $3 in
        *"child: got exit 127"*)
          if grep -q '^Bail out' out.txt; then echo "skip arm64.$2: $aborts"; else echo "skip arm64.$2: $spawns"; fi
          return ;;
      esac
      failed=1
      echo "FAIL arm64.$2:$3" ;;
    *) echo "$1 arm64.$2${3:+:$3}" ;;
  esac
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
for program in "${programs[@]}"; do
  LD_LIBRARY_PATH="$out" timeout 600 "$emulator" -E LD_LIBRARY_PATH="$out" "$out/test-c/$program" >out.txt 2>err.txt
  status=$?
  while read -r verdict name rest; do
    case $verdict in ok | FAIL | skip) say "$verdict" "$program.${name%:}" "${rest:+ $rest}" ;; esac
  done <out.txt
  case $status in 0 | 1 | 77) ;; *) say FAIL "$program" " exit status $status: $(tail -n 3 err.txt | tr '\n' ' ')" ;; esac
done
exit $failed
