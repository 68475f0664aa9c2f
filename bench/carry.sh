#!/bin/sh
# Measures on a machine that has no compiler: this folder, made by
# `make bench-carry`, is all it needs besides Python 3.8.
#   DATA=/var/tmp ./run.sh OUT
# DATA: a folder on the disk to be measured. OUT: where result.json, scale.json
# and the printed tables go; `bench/render.py OUT/*.json` at home does the rest.
# ROUNDS: of the table, default 7. LIMIT_S: scaling is left out if the table has
# taken more than that, default 390.
set -u
here=$(cd "$(dirname "$0")" && pwd)
out=${1:?run.sh OUT}
mkdir -p "$out"
export PYTHONUNBUFFERED=1
begin=$(date +%s)
python3 "$here/compare" --bin "$here" --data "${DATA:-/var/tmp}" --save "$out/result.json" --rounds "${ROUNDS:-7}" >"$out/table.txt" 2>&1
status=$?
cat "$out/table.txt"
[ $(($(date +%s) - begin)) -gt "${LIMIT_S:-390}" ] && { echo "no time left for scaling"; exit $status; }
python3 "$here/scale" --bin "$here" --data "${DATA:-/var/tmp}" --save "$out/scale.json" --rounds 1 >"$out/scale.txt" 2>&1 || status=1
cat "$out/scale.txt"
exit $status
