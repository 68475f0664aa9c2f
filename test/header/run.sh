#!/usr/bin/env bash
# The public headers: they compile alone, twice and together in every promised
# dialect, refuse other targets, prove the layouts, and are all that a client
# needs. One line a case: `ok NAME`, `FAIL NAME: reason`, `skip NAME: what`.
# PHX_REQUIRE=clang,arm64 (or all) turns skips for want of these into failures.
set -uo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0

STRICT=(-Wall -Wextra -Werror -pedantic -Iinclude)
SENTENCE='libphoenix supports only Linux LP64 little-endian on amd64 and arm64.'
LIB=${PHX_LIBRARY:-build/libphoenix.so}

pass() { echo "ok $1"; }
fail() { status=1; echo "FAIL $1: ${2//$'\n'/ | }"; }
skip() { # NAME WHAT-IS-MISSING [WORD of PHX_REQUIRE]
  case ",${PHX_REQUIRE:-}," in
    *,all,*|*,"${3:-none}",*) fail "$1" "$2, and PHX_REQUIRE asks for it";;
    *) echo "skip $1: $2";;
  esac
}
have() { command -v "$1" >/dev/null 2>&1; }

# NAME COMMAND...: ok if the command succeeds; its last lines are the reason.
try() {
  local name=$1 out
  shift
  if out=$("$@" 2>&1); then pass "$name"; else fail "$name" "$(tail -n 4 <<<"$out")"; fi
}

# NAME TEXT COMMAND...: ok if the command fails and says TEXT.
refused() {
  local name=$1 text=$2 out
  shift 2
  if out=$("$@" 2>&1); then fail "$name" "it compiled"
  elif ! grep -qF -- "$text" <<<"$out"; then fail "$name" "no '$text' in: $(head -n 4 <<<"$out")"
  else pass "$name"; fi
}

# ---- every dialect: C99 .. C++20, gcc and clang ----

# FILE HEADER...: a source that includes the headers in this order and uses
# what it got.
source_of() {
  local file=$1 h
  shift
  for h in "$@"; do echo "#include <$h>"; done >"$file"
  case " $* " in *phoenix.h*) cat test/header/use_phoenix.c >>"$file";; esac
  case " $* " in *ioctl.h*|*common.h*) cat test/header/use_ioctl.c >>"$file";; esac
  case " $* " in *common.h*) cat test/header/use_common.c >>"$file";; esac
}

dialect() { # COMPILER STANDARD
  local cc=$1 std=$2 lang=c h
  [[ $std == c++* ]] && lang=c++
  if ! have "$cc"; then skip "headers $std $cc" "$cc is not installed" clang; return; fi
  local -A cases=(
    [phoenix_alone]="phoenix.h" [ioctl_alone]="phxfs_ioctl.h" [common_alone]="common.h"
    [each_twice]="phoenix.h phoenix.h phxfs_ioctl.h phxfs_ioctl.h common.h common.h"
    [all_in_other_order]="common.h phxfs_ioctl.h phoenix.h"
  )
  for h in phoenix_alone ioctl_alone common_alone each_twice all_in_other_order; do
    # shellcheck disable=SC2086
    source_of "$work/t.c" ${cases[$h]}
    try "$h $std $cc" "$cc" -x "$lang" -std="$std" "${STRICT[@]}" -c -o "$work/t.o" "$work/t.c"
  done
}

for std in c99 c11; do for cc in gcc clang; do dialect $cc $std; done; done
for std in c++11 c++20; do for cc in g++ clang++; do dialect $cc $std; done; done

# ---- common.h stays out of the way ----

try "common.h before the C++ standard library" \
  g++ -std=c++20 "${STRICT[@]}" -fsyntax-only test/header/common_then_std.cc
try "common.h in a program with names of its own" \
  gcc -std=c11 "${STRICT[@]}" -fsyntax-only test/header/common_own_names.c
try "common.h without its short names" \
  gcc -std=c11 "${STRICT[@]}" -DPHXFS_NO_SHORT_TYPES -DOWN_TYPES -fsyntax-only test/header/common_own_names.c

# ---- other targets are refused with one sentence ----

for h in phoenix.h phxfs_ioctl.h common.h; do
  echo "#include <$h>" >"$work/p.c"
  refused "$h refuses another system" "$SENTENCE" gcc -U__linux__ -Iinclude -fsyntax-only "$work/p.c"
  refused "$h refuses 32 bits" "$SENTENCE" gcc -m32 -Iinclude -fsyntax-only "$work/p.c"
  refused "$h refuses x32" "$SENTENCE" gcc -mx32 -Iinclude -fsyntax-only "$work/p.c"
  for target in aarch64_be-linux-gnu riscv64-linux-gnu s390x-linux-gnu; do
    if have clang; then
      refused "$h refuses $target" "$SENTENCE" clang --target=$target -Iinclude -fsyntax-only "$work/p.c"
    else
      skip "$h refuses $target" "clang is not installed" clang
    fi
  done
done
if have aarch64-linux-gnu-gcc; then
  source_of "$work/t.c" phoenix.h phxfs_ioctl.h common.h
  try "headers on arm64" aarch64-linux-gnu-gcc -std=c99 "${STRICT[@]}" -fsyntax-only "$work/t.c"
else
  skip "headers on arm64" "aarch64-linux-gnu-gcc is not installed" arm64
fi

# ---- the layout proofs bite ----

# NAME HEADER SED-SCRIPT: the changed header must not compile.
broken_layout() {
  local copy=$work/broken/$2
  mkdir -p "$work/broken"
  sed "$3" "include/$2" >"$copy"
  if cmp -s "include/$2" "$copy"; then fail "$1" "the sed script changes nothing"; return; fi
  echo "#include \"$2\"" >"$work/b.c"
  refused "$1" phxfs_proof_ gcc -std=c99 -I"$work/broken" -fsyntax-only "$work/b.c"
}
broken_layout "proof sees a wider fd" phoenix.h 's/^\tint     fd;/\tlong    fd;/'
broken_layout "proof sees a missing buf_offset" phoenix.h '/^\toff_t   buf_offset;/d'
broken_layout "proof sees a field after result" phoenix.h 's/^\tssize_t result;/&int more;/'
broken_layout "proof sees a changed map_param" phxfs_ioctl.h '/uint64_t end_addr;/d'
broken_layout "proof sees a changed ioctl number" phxfs_ioctl.h 's/_IOW(0x88, 1,/_IOW(0x88, 3,/'

# ---- the header is all that a client needs ----

stand_in() {
  python3 test/header/standin.py include/phoenix.h "$work" &&
    gcc -std=c99 -Wall -Wextra -Werror -pedantic -shared -fPIC -Iinclude -Wl,-soname,libphoenix.so -Wl,-z,defs \
      -o "$work/libphoenix.so" "$work/standin.c" &&
    gcc -std=gnu99 "${STRICT[@]}" -I"$work" -Wl,-z,defs -o "$work/client" test/header/client.c -L"$work" -lphoenix
}
try "client links with -z defs against a stand-in made from the header" stand_in
if [ -x "$work/client" ]; then
  try "client runs on the stand-in" env LD_LIBRARY_PATH="$work" "$work/client" standin
  names=$(sed -n 's/.*"\(phxfs_[a-z_]*\)".*/\1/p' "$work/standin_values.h" | sort)
  try "the header declares 16 functions" test "$(wc -l <<<"$names")" = 16
  try "the header declares what cabi/phoenix.map exports" \
    diff <(sed -n 's/^ *\(phxfs_[a-z_]*\);.*/\1/p' cabi/phoenix.map | sort) <(cat <<<"$names")
  if [ -f "$LIB" ]; then
    try "the library exports what the header declares" \
      diff <(nm -D --defined-only "$LIB" | awk '{print $3}' | sort) <(cat <<<"$names")
    try "the same client runs on the library" \
      env LD_LIBRARY_PATH="$(dirname "$(realpath "$LIB")")" PHXFS_VENDOR=HOST "$work/client" library "$work/client.bin"
    try "the same client runs on the library with LD_BIND_NOW" \
      env LD_BIND_NOW=1 LD_LIBRARY_PATH="$(dirname "$(realpath "$LIB")")" PHXFS_VENDOR=HOST "$work/client" library "$work/client.bin"
  else
    skip "the same client runs on the library" "$LIB is not built (make build)"
  fi
fi
exit $status
