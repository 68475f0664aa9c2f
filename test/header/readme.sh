#!/usr/bin/env bash
# What README.md claims and a machine can check: its fenced C and Python work on
# the host device, its make targets exist, and every relative link of the
# documentation leads somewhere. `ok NAME`, `FAIL NAME: reason`, `skip NAME: what`.
set -uo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
top=$PWD
lib=$(realpath -m "${PHX_LIBRARY:-build/libphoenix.so}")

try() { # NAME COMMAND...
  local name=$1 out
  shift
  if out=$("$@" 2>&1); then
    echo "ok $name"
  else
    status=1
    out=$(tail -n 4 <<<"$out")
    echo "FAIL $name: ${out//$'\n'/ | }"
  fi
}

# LANGUAGE: the only fenced block of that language.
block() { awk -v open="\`\`\`$1" '$0 == open {on = 1; next} $0 == "```" {on = 0} on' README.md; }

c_block() {
  block c >"$work/read.c"
  gcc -Wall -Wextra -Werror -Iinclude -o "$work/read" "$work/read.c" -L"$(dirname "$lib")" -lphoenix &&
    (cd "$work" && LD_LIBRARY_PATH=$(dirname "$lib") ./read >out) && grep -q '^1048576 bytes' "$work/out"
}

python_block() {
  block python >"$work/read.py"
  (cd "$work" && PHX_LIBRARY=$lib PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$top/examples/python python3 read.py >out) &&
    grep -qF '[524288, 524288] bytes' "$work/out"
}

ten_lines() { test "$(block "$1" | grep -c .)" -le 10; }

try "README's C has at most ten lines" ten_lines c
try "README's Python has at most ten lines" ten_lines python
try "documentation links lead somewhere" python3 test/header/links.py README.md CONTRIBUTING.md CHANGELOG.md docs/*.md
if [ -f Makefile ]; then
  for target in $(grep -ohE '\bmake [a-z][a-z-]*' README.md CONTRIBUTING.md | awk '{print $2}' | sort -u); do
    try "make $target is a target" grep -qE "^$target:" Makefile
  done
fi
if [ -f "$lib" ]; then
  export PHXFS_VENDOR=HOST
  head -c 2000000 /dev/urandom >"$work/model.bin"
  try "README's C works" c_block
  try "README's Python works" python_block
else
  echo "skip README's C works: build/libphoenix.so is not built (make build)"
  echo "skip README's Python works: build/libphoenix.so is not built (make build)"
fi
exit $status
