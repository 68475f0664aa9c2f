#!/usr/bin/env python3
"""make test: every suite, and one closing line
`N passed, M failed, K skipped` summed over Go, C and Python. The exit status
agrees with it. PHX_REQUIRE=all (or a list of gpu,io_uring,seccomp,odirect)
turns skips for want of those things into failures.

One suite follows the other, but for those that build in folders of their own:
they run beside (`all.py beside`), and what they print comes near the end."""
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OUT = os.path.join(TOP, "build", "report")
MAKE = os.environ.get("MAKE", "make")
total = {"passed": 0, "failed": 0, "skipped": 0}
begin = last = time.monotonic()
failures = []


def count(suite, passed=0, failed=0, skipped=0):
    for key, n in (("passed", passed), ("failed", failed), ("skipped", skipped)):
        total[key] += n
    if failed:
        failures.append(f"{suite}: {failed} failed")
    global last
    spent, last = time.monotonic() - last, time.monotonic()
    print(f"== {suite}: {passed} passed, {failed} failed, {skipped} skipped, {spent:.0f} s", flush=True)


def run(*command, **kw):
    print("$", *command, flush=True)
    return subprocess.run(command, cwd=TOP, **kw)


def step(suite, *command):
    """A command that is one test: it passes or it fails."""
    ok = run(*command).returncode == 0
    count(suite, passed=int(ok), failed=int(not ok))
    return ok


def lines(suite, *command):
    """A command that prints `ok NAME`, `FAIL NAME: ..`, `skip NAME: ..`."""
    p = run(*command, stdout=subprocess.PIPE, text=True)
    print(p.stdout, end="")
    n = {w: len(re.findall(rf"^{w} ", p.stdout, re.M)) for w in ("ok", "FAIL", "skip")}
    broken = int(p.returncode != 0 and not n["FAIL"]) or int(not sum(n.values()))
    count(suite, n["ok"], n["FAIL"] + broken, n["skip"])


def go_suite(suite, *flags, packages=("./...",), **env):
    """go test, counted by leaf tests; prints failures and skips only."""
    command = ["go", "test", "-json", *flags, *packages]
    print("$", *command, flush=True)
    p = subprocess.Popen(command, cwd=TOP, stdout=subprocess.PIPE, text=True, env={**os.environ, **env})
    result, output, broken = {}, {}, []
    for raw in p.stdout:
        try:
            e = json.loads(raw)
        except ValueError:
            print(raw, end="")
            continue
        key = (e.get("Package") or e.get("ImportPath"), e.get("Test"))
        if e["Action"] in ("output", "build-output"):
            output.setdefault(key, []).append(e["Output"])
        elif e["Action"] in ("pass", "fail", "skip") and e.get("Test"):
            result[key] = e["Action"]
        elif e["Action"] in ("fail", "build-fail"):
            broken.append(key)
    p.wait()
    parents = {(pkg, t.rsplit("/", 1)[0]) for pkg, t in result if "/" in t}
    leaves = {k: v for k, v in result.items() if k not in parents or v == "fail"}
    for key, verdict in leaves.items():
        if verdict != "pass":
            print(f"-- {verdict} {key[0]} {key[1]}\n{''.join(output.get(key, []))}", end="")
    for key in broken:
        print(f"-- fail {key[0]}\n{''.join(output.get(key, []))}", end="")
    n = {v: sum(1 for x in leaves.values() if x == v) for v in ("pass", "fail", "skip")}
    lost = int(p.returncode != 0 and not n["fail"])
    count(suite, n["pass"], n["fail"] + lost, n["skip"])


def c_suite(suite, target, report, more=""):
    path = os.path.join(OUT, report)
    p = run(MAKE, "--no-print-directory", target, f"FILTER=--json {path} {more}")
    try:
        with open(path) as f:
            n = json.load(f)
        lost = int(p.returncode != 0 and not n["failed"])
        count(suite, n["passed"], n["failed"] + lost, n["skipped"])
    except (OSError, ValueError):
        count(suite, failed=1)


def python_suite(suite, report, *flags):
    path = os.path.join(OUT, report)
    p = run(sys.executable, "test/run_pytest.py", *flags, "-q", "-rs", f"--junitxml={path}", "test/python")
    try:
        s = ET.parse(path).getroot().find("testsuite")
        n = {k: int(s.get(k)) for k in ("tests", "failures", "errors", "skipped")}
        bad = n["failures"] + n["errors"]
        lost = int(p.returncode != 0 and not bad)
        count(suite, n["tests"] - bad - n["skipped"], bad + lost, n["skipped"])
    except (OSError, ET.ParseError, AttributeError):
        count(suite, failed=1)


def emulated():
    """The suites again on emulated devices, where any pin left behind fails."""
    phx = [os.path.join(TOP, "build", "phx"), "emulate", "--strict", "--"]
    unable = run(*phx, "true").returncode  # it says why
    if unable:
        required = {"seccomp", "all"} & set(os.environ.get("PHX_REQUIRE", "").split(","))
        skip = unable == 77 and not required
        count("emulated devices", failed=int(not skip), skipped=int(skip))
        return
    go_suite("go, emulated device", "-count=1", "-exec", shlex.join(phx), "-run", "Data|Engines",
             packages=("./test/statemachine", "./test/threeway"), T_EMULATED="1", PHX_THREEWAY="600")
    c_suite("C, emulated device", "check-emulated", "emulated.json")
    c_suite("C, forks on a slow emulated device", "check-emulated", "slow.json",
            "--inject open:0:0:20:2ms,map:0:0:200:1ms,unmap:0:0:200:2ms fork_")
    python_suite("Python, emulated device", "python-emulated.xml", "--emulate", "build/phx")


def beside():
    """Other builds of the library; by itself, with the counts as its last line."""
    c_suite("C, AddressSanitizer", "asan", "asan.json")
    lines("arm64, emulated", "test/arm64.sh", "quick")
    print(json.dumps([total, failures]))


def gather(child, path):
    """Adds what `all.py beside` counted."""
    child.wait()
    with open(path) as f:
        *text, result = f.read().splitlines() or [""]
    print("\n".join(text))
    try:
        counts, failed = json.loads(result)
    except ValueError:
        print(result)
        return count("the suites beside", failed=1)
    for key in total:
        total[key] += counts[key]
    failures.extend(failed)


def main():
    for s in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(s, signal.SIG_DFL)  # a background job's are ignored, and inherited
    if sys.argv[1:] == ["beside"]:
        return beside()
    os.makedirs(OUT, exist_ok=True)
    for old in os.listdir(OUT):
        os.remove(os.path.join(OUT, old))
    if step("build", MAKE, "--no-print-directory", "build"):
        path = os.path.join(OUT, "beside.log")
        with open(path, "w") as log:
            child = subprocess.Popen([sys.executable, __file__, "beside"], stdout=log, stderr=subprocess.STDOUT)
        step("gofmt", "bash", "-c", 'out=$(gofmt -l $(git ls-files "*.go")); echo "$out"; [ -z "$out" ]')
        step("vet", "go", "vet", "./...")
        step("staticcheck", "go", "tool", "staticcheck", "./...")
        step("the bugs to plant fit the code", sys.executable, "test/statemachine/planted.py", "--fit")
        lines("headers", "test/header/run.sh")
        go_suite("go")
        go_suite("go, race detector", "-race")
        c_suite("C, host device", "check-c", "c.json")
        c_suite("C, exits with the sync engine", "check-c", "exit-sync.json", "--env PHXFS_IO_ENGINE=sync exit_")
        c_suite("C, staged", "check-c-staged", "staged.json")
        python_suite("Python, host device", "python.xml")
        lines("containers", sys.executable, "test/process/containers.py", "docker")
        emulated()
        lines("forks under stress", "test/stress/fork/run.sh")
        lines("examples and README", "test/examples.sh")
        lines("the benchmark works", "test/bench.sh")
        lines("GPU programs, stand-in driver", "test/gpu.sh")
        lines("models", "test/models.sh")
        gather(child, path)
    print(f"took {time.monotonic() - begin:.0f} s")
    for line in failures:
        print("!!", line)
    print(f"{total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped", flush=True)
    return 1 if total["failed"] or not total["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
