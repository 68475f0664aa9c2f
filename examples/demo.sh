#!/usr/bin/env bash
# `make demo`: loads a file into a registered buffer by one batch, in C and in
# Python, each verified against a plain read; then a real model, every tensor
# verified, in both languages and with both engines. No GPU and no kernel
# module: the host connector stands in for a device.
#   PHX_DEMO_BYTES  size of the file, default 536870912 (512 MiB)
set -euo pipefail
cd "$(dirname "$0")/.."

bytes=${PHX_DEMO_BYTES:-536870912}
file=build/demo/weights.bin
mkdir -p build/demo

# Shows a command as one would type it, then runs it.
run() {
  printf '\n$ %s\n' "$*"
  env "$@"
}

if [ "$(stat -c %s "$file" 2>/dev/null || true)" != "$bytes" ]; then
  echo "making $file, $bytes random bytes"
  head -c "$bytes" /dev/urandom >"$file.part"
  mv "$file.part" "$file"
fi

"${CC:-gcc}" -O2 -Wall -Iinclude -o build/demo/demo_batch examples/c/demo_batch.c \
  -Lbuild -lphoenix -Wl,-rpath,'$ORIGIN/..'

echo
echo "PHXFS_VENDOR=HOST: ordinary memory is registered in place of device memory."
run PHXFS_VENDOR=HOST build/demo/demo_batch "$file"
run PHXFS_VENDOR=HOST PHX_LIBRARY=build/libphoenix.so "${PYTHON:-python3}" examples/python/read_batch.py "$file"

echo
model=$("${PYTHON:-python3}" test/model/fetch.py | tail -n 1)
"${CC:-gcc}" -O2 -Wall -Iinclude -o build/demo/load_model \
  examples/c/{load_model,watched_read,safetensors,safetensors_header,json}.c \
  -Lbuild -lphoenix -Wl,-rpath,'$ORIGIN/..'
for engine in io_uring sync; do
  run PHXFS_VENDOR=HOST PHXFS_IO_ENGINE=$engine build/demo/load_model "$model"
  run PHXFS_VENDOR=HOST PHXFS_IO_ENGINE=$engine PHX_LIBRARY=build/libphoenix.so \
    "${PYTHON:-python3}" examples/python/load_model.py "$model"
done
echo
echo "demo: loaded and verified in C and in Python, with io_uring and without"
