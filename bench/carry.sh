#!/bin/sh
# Measures on a machine that has no compiler: this folder, made by
# `make bench-carry`, is all it needs besides Python 3.8.
#   DATA=/var/tmp ./run.sh OUT
# DATA: a folder on the disk to be measured. OUT: where result.json and the
# printed tables go; `bench/render.py OUT/result.json` at home does the rest.
set -u
here=$(cd "$(dirname "$0")" && pwd)
out=${1:?run.sh OUT}
mkdir -p "$out"
PYTHONUNBUFFERED=1 python3 "$here/compare" --bin "$here" --data "${DATA:-/var/tmp}" --save "$out/result.json" --rounds "${ROUNDS:-7}" >"$out/table.txt" 2>&1
status=$?
cat "$out/table.txt"
exit $status
