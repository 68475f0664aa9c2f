#!/usr/bin/env bash
# linked.sh LIBRARY MAP: did the linker do what lazy start and the ABI need?
# It runs right after linking and fails the build with the reason.
set -euo pipefail
lib=$1 map=$2
fail() { echo "link check of $lib: $1" >&2; exit 1; }

want=$(sed -n 's/^ *\(phxfs_[a-z_]*\);$/\1/p' "$map" | sort)
have=$(nm -D --defined-only "$lib" | awk '{print $3}' | sort)
[ "$want" = "$have" ] || fail "its dynamic symbols are not those of $map: $(diff <(echo "$want") <(echo "$have") | grep '^[<>]' | tr '\n' ' ')"

dynamic=$(readelf -dW "$lib")
grep -q 'Library soname: \[libphoenix.so\]' <<<"$dynamic" || fail "its SONAME is not libphoenix.so"
grep -q 'NODELETE' <<<"$dynamic" || fail "it is not marked NODELETE (Go cannot be unloaded)"

# One 8-byte entry: Go's. The linker script lazy.ld was understood.
size=$(readelf -SW "$lib" | sed 's/\[ *\([0-9]*\)\]/\1/' | awk '$2 == ".phx_init" {print $6}')
[ -n "$size" ] || fail "the linker did not apply cabi/lazy.ld (no .phx_init): use GNU ld"
[ "$((16#$size))" = 8 ] || fail ".phx_init holds $((16#$size / 8)) entries, not Go's one"
