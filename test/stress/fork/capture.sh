#!/bin/sh
# capture.sh PID FOLDER: what every thread of a process, and its children, is doing.
pid=$1
exec >>"$2/miss.$pid" 2>&1
date
uptime
for p in $pid $(cat /proc/$pid/task/*/children 2>/dev/null); do
  echo "== process $p: $(tr '\0' ' ' </proc/$p/cmdline)"
  cat /proc/$p/status
  for t in /proc/$p/task/*; do
    echo "-- thread $t"
    grep -E '^(Name|State|Sig)' "$t/status"
    cat "$t/syscall" "$t/wchan" "$t/stack"
    echo
  done
  timeout 60 gdb -p "$p" -batch -ex 'thread apply all bt' -ex 'info sharedlibrary'
done
date
