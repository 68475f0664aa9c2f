#!/usr/bin/env python3
"""Runs the C behaviour tests of a folder and counts their cases.

    run.py --lib build/libphoenix.so --bin build/test-c [--json FILE] [--env K=V]... [--staged most|all] [--asan]
           [--emulate build/phx [--inject RULES]] [FILTER]

FILTER: only programs with it in their name; `program.case` also filters cases.
Every program runs in an empty folder of its own (under TMPDIR, else beside the
programs: O_DIRECT needs a real file system) and prints a line for each case
(t.h). One that crashes, hangs, or prints no such line counts as a failure.
--emulate: each program runs on emulated devices and fails if phx finds anything
wrong (docs/emulator.md); HOST_ONLY says which do not, and why.
Ends with `N passed, M failed, K skipped`; the exit status agrees."""
import argparse
import concurrent.futures
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

# Programs that have nothing to say about staged memory.
UNSTAGED = {
    **dict.fromkeys(("default_vendor_no_gpu", "env_after_load", "fork_dlopen", "process_descriptors"), "is about device nodes"),
    **dict.fromkeys(("env_numbers", "exit_refused", "fork_closed", "fork_descriptors", "fork_direct", "fork_facts", "fork_image",
                     "fork_signals", "fork_start", "host_process_untouched", "process_aio", "process_uring", "rlimit_as",
                     "signals_default", "signals_handlers", "thread_room", "threads_herd", "two_dlopens"),
                    "registers no memory"),
    **dict.fromkeys(("map_mode", "process_limits", "staging_cuda"), "stages by itself in every run"),
    "call_budget": "counts the system calls of a run without staging",
}
# Programs that take seconds each, so that they run with "all" only.
SLOW_STAGED = {
    "beyond_one_gib": "moves gigabytes",
    "exit_anywhere": "a second for each place where exit() can come",
    "panics": "about a hundred processes",
    "signals_storm": "seconds of signals",
}
LIMIT_S = 120  # a program takes a few seconds; the harness reports hung cases itself at 60
JOBS = {"emulated": 3, "staged": 2}  # programs that run at once where they wait more than they compute

# Programs that have nothing to say on an emulated device.
HOST_ONLY = {
    "call_budget": "counts system calls, in children that _exit with everything open",
    "default_vendor_no_gpu": "is about a machine without a device",
    "env_after_load": "chooses vendors and device folders itself",
    "fork_dlopen": "makes a node of its own, for a process without a vendor's library",
    "fork_image": "loads samples, not the library",
    "interrupted_transfers": "brings a seccomp supervisor, and a process can have one",
    "process_limits": "is about limits of the process, in which a device has no part",
    "process_uring": "is about io_uring, in which a device has no part",
    "thread_room": "is about a file of the library, not the library",
    "signals_storm": "has handlers without SA_RESTART: opens and ioctls wait for phx and give EINTR",
    "signals_mapped_file": "registers a mapped file, which is no device memory",
    "staging_cuda": "brings a GPU and its driver, and must find no node",
}
LINE = re.compile(r"^(ok|FAIL|skip) (.*)")


def arguments():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("filter", nargs="?", default="")
    p.add_argument("--lib", default="build/libphoenix.so")
    p.add_argument("--bin", help="folder of the programs; default: test-c beside the library")
    p.add_argument("--json", help="file for the counts")
    p.add_argument("--env", action="append", default=[], metavar="K=V")
    p.add_argument("--staged", choices=["most", "all"], help="reach the host device's memory through host staging")
    p.add_argument("--asan", action="store_true", help="library and programs are AddressSanitizer builds")
    p.add_argument("--emulate", metavar="PHX", help="run on emulated devices, by this phx")
    p.add_argument("--inject", help="rules for phx emulate")
    a = p.parse_args()
    if a.emulate:
        a.emulate = os.path.abspath(a.emulate)
    a.lib = os.path.abspath(a.lib)
    a.bin = os.path.abspath(a.bin or os.path.join(os.path.dirname(a.lib), "test-c"))
    return a


def programs(folder):
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if "." not in name and os.path.isfile(path) and os.access(path, os.X_OK):
            yield name, path


def environment(a, scratch):
    home = os.path.dirname(a.lib)
    if os.path.basename(a.lib) != "libphoenix.so":  # found by its SONAME
        home = os.path.join(scratch, "lib")
        os.makedirs(home, exist_ok=True)
        os.symlink(a.lib, os.path.join(home, "libphoenix.so"))
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PHXFS_", "T_"))}
    env.update(PHX_LIB=a.lib, LD_LIBRARY_PATH=home)
    if a.asan:  # Go's memory is not LeakSanitizer's to judge, faults are Go's to see first
        env["ASAN_OPTIONS"] = "detect_leaks=0:allow_user_segv_handler=1:abort_on_error=1"
    if a.staged:
        env.update(PHXFS_MODE="host_staging", PHXFS_VENDOR="HOST")
    if a.emulate:
        env.update(T_EMULATED="1", PHXFS_VENDOR="NVIDIA", LD_PRELOAD=os.path.join(a.bin, "fake_gpus.so"))
    env.update(e.split("=", 1) for e in a.env)
    return env


def left_out(a, name):
    """Why this run does without a program; None: it does not."""
    if a.emulate and name in HOST_ONLY:
        return "on the host device only: " + HOST_ONLY[name]
    if a.staged and name in UNSTAGED:
        return "not staged: " + UNSTAGED[name]
    if a.staged == "most" and name in SLOW_STAGED:
        return "staged with `all` only: " + SLOW_STAGED[name]
    return None


def command(a, path, case):
    c = [path] + ([case] if case else [])
    if not a.emulate:
        return c
    return [a.emulate, "emulate", "--strict", *(["--inject", a.inject] if a.inject else []), "--", *c]


def can_emulate(a):
    """Whether this machine can; says why not."""
    p = subprocess.run(command(a, "true", None), stderr=subprocess.PIPE, text=True)
    if p.returncode == 0:
        return True
    required = {"seccomp", "all"} & set(os.environ.get("PHX_REQUIRE", "").split(","))
    verdict = "skip" if p.returncode == 77 and not required else "FAIL"
    print(f"{verdict} emulated devices: {p.stderr.strip()}")
    return verdict


def run(argv, env, cwd):
    """Returns (exit status or None, stdout, stderr) of one program."""
    p = subprocess.Popen(argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                         start_new_session=True)
    try:
        out, err = p.communicate(timeout=LIMIT_S)
        return p.returncode, out, err
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, signal.SIGKILL)  # the program and the children it made
        out, err = p.communicate()
        return None, out, err


def judge(name, status, out, err):
    """Prints the program's lines; returns its counts."""
    n = {"ok": 0, "FAIL": 0, "skip": 0}
    for line in out.splitlines():
        m = LINE.match(line)
        if m:
            n[m.group(1)] += 1
            line = f"{m.group(1)} {name}.{m.group(2)}"
        print(line)
    wrong = None
    if status is None:
        wrong = f"not finished after {LIMIT_S} s, killed"
    elif status < 0:
        wrong = f"killed by signal {-status} ({signal.Signals(-status).name})"
    elif status not in (0, 1, 77):
        wrong = f"exit status {status}"
    elif not sum(n.values()):
        wrong = f"no case was run, exit status {status}"
    elif (status == 1) != (n["FAIL"] > 0) or (status == 77) != (n["ok"] + n["FAIL"] == 0):
        wrong = f"exit status {status} does not agree with its lines"
    if wrong:
        n["FAIL"] += 1
        print(f"FAIL {name}: {wrong}")
    if n["FAIL"] and err:
        print("".join(f"  | {line}\n" for line in err.splitlines()[-60:]), end="")
    sys.stdout.flush()
    return n


def main():
    a = arguments()
    want, _, case = a.filter.partition(".")
    total, slow, begin = {"ok": 0, "FAIL": 0, "skip": 0}, [], time.monotonic()
    base = os.environ.get("TMPDIR") or a.bin
    scratch = tempfile.mkdtemp(prefix="scratch-", dir=base)
    try:
        env = environment(a, scratch)
        chosen = [(n, p) for n, p in programs(a.bin) if want in n]
        able = can_emulate(a) if a.emulate else True
        if able is not True:
            total[able] += 1
            chosen = []
        for name in [n for n, _ in chosen if left_out(a, n)]:
            print(f"skip {name}: {left_out(a, name)}")
            total["skip"] += 1
        chosen = [(n, p) for n, p in chosen if not left_out(a, n)]

        def one(program):
            name, path = program
            cwd = os.path.join(scratch, name)
            os.makedirs(cwd)
            begin = time.monotonic()
            return name, run(command(a, path, case), env, cwd), time.monotonic() - begin

        with concurrent.futures.ThreadPoolExecutor(JOBS["emulated"] if a.emulate else JOBS["staged"] if a.staged else 1) as pool:
            for name, ended, took in pool.map(one, chosen):
                for verdict, k in judge(name, *ended).items():
                    total[verdict] += k
                slow.append((took, name))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if not sum(total.values()):
        print(f"FAIL: no program in {a.bin} matches {a.filter!r}")
        total["FAIL"] += 1
    slow.sort(reverse=True)
    print(f"took {time.monotonic() - begin:.1f} s; slowest: " + ", ".join(f"{n} {t:.1f} s" for t, n in slow[:3]))
    print(f"{total['ok']} passed, {total['FAIL']} failed, {total['skip']} skipped")
    if a.json:
        with open(a.json, "w") as f:
            json.dump({"passed": total["ok"], "failed": total["FAIL"], "skipped": total["skip"]}, f)
    return 1 if total["FAIL"] else 0


if __name__ == "__main__":
    sys.exit(main())
