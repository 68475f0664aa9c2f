#!/usr/bin/env bash
# Every example builds and works, and so does every claim of the README that a
# machine can check. Prints `ok NAME`, `FAIL NAME: reason`, `skip NAME: what`.
set -uo pipefail
cd "$(dirname "$0")/.."
status=0
try() { # NAME COMMAND...: ok if the command succeeds
  local name=$1 log
  shift
  if log=$("$@" 2>&1); then echo "ok $name"; else
    status=1
    echo "FAIL $name: $*"
    sed 's/^/     /' <<<"$log"
  fi
}
install_roundtrip() {
  local d
  d=$(mktemp -d) || return 1
  make --no-print-directory install DESTDIR="$d" PREFIX=/usr &&
    test -f "$d/usr/lib/libphoenix.so" && test -f "$d/usr/include/phoenix.h" && "$d/usr/bin/phx" version &&
    make --no-print-directory uninstall DESTDIR="$d" PREFIX=/usr && [ -z "$(find "$d" -type f)" ]
  local rc=$?
  rm -rf "$d"
  return $rc
}
read_one() {
  gcc -O2 -Wall -Wextra -Werror -Iinclude examples/c/read_one.c -o build/demo/read_one -Lbuild -lphoenix '-Wl,-rpath,$ORIGIN/..' &&
    PHXFS_VENDOR=HOST build/demo/read_one build/demo/weights.bin
}
try "make demo" make --no-print-directory demo
try "examples/c/read_one.c" read_one
try "make install, make uninstall" install_roundtrip
try "phx version" build/phx version
test/header/readme.sh || status=1
exit $status
