#!/usr/bin/env bash
# deps.sh: the system packages that building and testing need. Installs what is
# missing only as root on an apt system; elsewhere prints the one command. It
# never calls sudo. What only some tests need is named as optional: without it
# those tests are skipped, and say so; make bench needs liburing.
set -euo pipefail
need=() optional=()
have() { command -v "$1" >/dev/null 2>&1; }
have gcc && have g++ || need+=(g++)
have make || need+=(make)
have readelf || need+=(binutils)
have python3 || need+=(python3)
have git || need+=(git)
echo '#include <liburing.h>' | gcc -fsyntax-only -x c - 2>/dev/null || optional+=(liburing-dev)
have clang && have clang++ || optional+=(clang)
echo '#include <linux/seccomp.h>' | aarch64-linux-gnu-gcc -fsyntax-only -x c - 2>/dev/null || optional+=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross)
have qemu-aarch64 || have qemu-aarch64-static || optional+=(qemu-user)
ldconfig -p 2>/dev/null | grep -q 'libjemalloc\.so\.2' || optional+=(libjemalloc2)
all=("${need[@]}" "${optional[@]}")
[ ${#all[@]} -eq 0 ] && exit 0
if [ "$(id -u)" = 0 ] && have apt-get; then
  export DEBIAN_FRONTEND=noninteractive
  apt() { timeout 300 apt-get -qq -o Acquire::Retries=1 -o Acquire::http::Timeout=30 "$@" >/dev/null; }
  add() { apt install -y --no-install-recommends "$@" || { echo "deps: apt-get could not install $*" >&2; return 1; }; }
  apt update || true
  [ ${#need[@]} -eq 0 ] || add "${need[@]}" || exit 1
  [ ${#optional[@]} -eq 0 ] || add "${optional[@]}" || true
  exit 0
fi
if [ ${#need[@]} -gt 0 ]; then
  echo "deps: missing ${need[*]}; as root: apt-get install ${all[*]}" >&2
  exit 1
fi
echo "deps: the tests that need ${optional[*]} will be skipped; as root: apt-get install ${optional[*]}" >&2
