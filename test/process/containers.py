#!/usr/bin/env python3
"""The suites inside containers, as far as a seccomp filter makes one (confine.c).

    containers.py [--build build] [MODE...]

Prints `ok NAME`, `FAIL NAME: ...` or `skip NAME: what is missing`; exit status
0 or 1. PHX_REQUIRE=seccomp (or all) turns a skip for want of filters into a
failure. Without io_uring the engine must call itself sync, say why once, and
everything must work; in Docker's default profile the whole C and Python suites
must pass."""
import argparse
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HERE = os.path.dirname(os.path.abspath(__file__))
MODES = ("uring-eperm", "uring-enosys", "docker")
REQUIRED = set(os.environ.get("PHX_REQUIRE", "").split(","))
bad = 0


def say(verdict, name, why=""):
    global bad
    bad += verdict == "FAIL"
    print(f"{verdict} {name}" + (f": {why}" if why else ""), flush=True)


def check(name, wrong):
    say("FAIL" if wrong else "ok", name, wrong)


def build(out):
    """The wrapper; its list of system calls becomes a header here."""
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(HERE, "docker_default.txt")) as f:
        names = " ".join(line for line in f if not line.startswith("#")).split()
    with open(os.path.join(out, "docker_default.h"), "w") as f:
        f.writelines(f"#ifdef __NR_{n}\nS({n})\n#endif\n" for n in names)
    confine = os.path.join(out, "confine")
    subprocess.run([os.environ.get("CC", "gcc"), "-O1", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", "-I", out,
                    os.path.join(HERE, "confine.c"), "-o", confine], check=True)
    return confine


PROBE = """
import ctypes, os, sys
lib = ctypes.CDLL(sys.argv[1])
lib.phxfs_io_engine_name.restype = ctypes.c_char_p
class Req(ctypes.Structure):
    _fields_ = [("fd", ctypes.c_int), ("device_id", ctypes.c_int), ("buf", ctypes.c_void_p), ("buf_offset", ctypes.c_int64),
                ("nbytes", ctypes.c_size_t), ("f_offset", ctypes.c_int64), ("result", ctypes.c_ssize_t)]
fd = os.memfd_create("data")
data = os.urandom(64 * 4096)
os.write(fd, data)
memory = ctypes.create_string_buffer(len(data))
reqs = (Req * 64)(*[Req(fd, -1, ctypes.addressof(memory), i * 4096, 4096, i * 4096, 0) for i in range(64)])
for round in range(20):
    assert lib.phxfs_read_batch(reqs, 64) == 0 and memory.raw == data
print(lib.phxfs_io_engine_name().decode(), end="")
"""


def probe(command, lib, log="warn", **env):
    """(engine's name, its log, what went wrong)"""
    p = subprocess.run([*command, sys.executable, "-c", PROBE, lib], capture_output=True, text=True, timeout=120,
                       env={**os.environ, "PHXFS_VENDOR": "HOST", "PHXFS_LOG": log, **env})
    return p.stdout, p.stderr, "" if p.returncode == 0 else f"exit status {p.returncode}: {p.stderr[-800:]}"


def engine(mode, confine, lib):
    free, _, wrong = probe([], lib)
    if wrong:
        return say("FAIL", f"{mode}/engine", f"without a filter: {wrong}")
    has_uring = free == "io_uring"  # this build and this kernel have it
    for asked in (None, "io_uring", "sync"):
        env = {"PHXFS_IO_ENGINE": asked} if asked else {}
        name, log, wrong = probe([confine, mode], lib, **env)
        lines = [line for line in log.splitlines() if "io_uring" in line]
        if not wrong and name != "sync":
            wrong = f"the engine calls itself {name!r}, want 'sync'"
        if not wrong and has_uring and asked != "sync" and len(lines) != 1:
            wrong = f"want one line that says why there is no io_uring, got {lines}"
        if not wrong and has_uring and asked != "sync" and not re.search("EPERM|ENOSYS|not permitted|not implemented", lines[0]):
            wrong = f"the line does not say the kernel's reason: {lines[0]}"
        check(f"{mode}/engine asked for {asked or 'nothing'} is sync", wrong)


def c_suite(mode, confine, lib, test_c, only):
    p = subprocess.run([confine, mode, sys.executable, os.path.join(TOP, "test/c/run.py"), "--lib", lib, "--bin", test_c, only],
                       stdout=subprocess.PIPE, text=True, env=without_requirements())
    seen = False
    for line in p.stdout.splitlines():
        m = re.match(r"(ok|FAIL|skip) ([^:]+)(?:: (.*))?$", line)
        if m:
            seen = True
            say(m.group(1), f"{mode}/{m.group(2)}", m.group(3) or "")
        elif line.startswith(("  also", "  |")):
            print(line)
    if not seen or (p.returncode and " failed" not in p.stdout):
        say("FAIL", f"{mode}/C suite", f"exit status {p.returncode}")


def without_requirements():
    """What a container takes away (userfaultfd) is no failure in it."""
    return {k: v for k, v in os.environ.items() if k != "PHX_REQUIRE"}


def python_suite(mode, confine, lib, out):
    report = os.path.join(out, f"python-{mode}.xml")
    p = subprocess.run([confine, mode, sys.executable, os.path.join(TOP, "test/run_pytest.py"), "-q", f"--junitxml={report}",
                        os.path.join(TOP, "test/python")], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                       env={**without_requirements(), "PHX_LIB": lib, "PHX_LIBRARY": lib})
    try:
        cases = list(ET.parse(report).getroot().iter("testcase"))
    except (OSError, ET.ParseError):
        return say("FAIL", f"{mode}/Python suite", f"exit status {p.returncode}: {p.stdout[-2000:]}")
    for c in cases:
        failed = [e.get("message", "") for e in c if e.tag in ("failure", "error")]
        skipped = [e.get("message", "") for e in c if e.tag == "skipped"]
        verdict = "FAIL" if failed else "skip" if skipped else "ok"
        say(verdict, f"{mode}/{c.get('classname')}.{c.get('name')}", " ".join((failed or skipped or [""])[0].split())[:400])


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--build", default=os.path.join(TOP, "build"))
    p.add_argument("modes", nargs="*", default=MODES)
    a = p.parse_args()
    a.build = os.path.abspath(a.build)
    lib, test_c, out = (os.path.join(a.build, n) for n in ("libphoenix.so", "test-c", "process"))
    confine = build(out)
    if subprocess.run([confine, "docker", "true"]).returncode == 77:
        say("FAIL" if REQUIRED & {"seccomp", "all"} else "skip", "containers", "seccomp filters")
        return bad > 0
    for mode in a.modes:
        engine(mode, confine, lib)
        c_suite(mode, confine, lib, test_c, "" if mode == "docker" else "batch")
    if "docker" in a.modes:
        python_suite("docker", confine, lib, out)
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
