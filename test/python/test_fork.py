"""Python processes forked from one that has used the library: os.fork, threads,
subprocess, signals, faulthandler, and how they end."""
import os
import signal
import subprocess

import pytest

from fork_kit import program, run


def test_os_fork_after_use(tmp_path):
    run(tmp_path, """
assert use()
assert [reap(p) for p in [fork(use) for _ in range(8)]] == [0] * 8
assert reap(fork(lambda: use() and reap(fork(use)) == 0 and use())) == 0
assert reap(fork(lambda: reap(fork(use)) == 0)) == 0  # in between: never used
assert use()
""")


def test_os_fork_in_threads_while_others_read(tmp_path):
    run(tmp_path, """
assert use()
stop, wrong = False, []
def reader():
    while not stop:
        check() or wrong.append("parent")
def forker():
    for _ in range(10):
        reap(fork(use)) == 0 or wrong.append("child")
readers = [threading.Thread(target=reader) for _ in range(2)]
forkers = [threading.Thread(target=forker) for _ in range(3)]
for t in readers + forkers: t.start()
for t in forkers: t.join()
stop = True
for t in readers: t.join()
assert not wrong, wrong
""")


def test_threads_in_a_child(tmp_path):
    run(tmp_path, """
assert use()
def body():
    results = []
    threads = [threading.Thread(target=lambda: results.append(use())) for _ in range(6)]
    for t in threads: t.start()
    for t in threads: t.join()
    return results == [True] * 6
assert [reap(fork(body)) for _ in range(3)] == [0] * 3
""")


def test_devices_and_registrations_of_the_parent_are_borrowed(tmp_path):
    run(tmp_path, """
memory = phoenix.aligned(2 * phoenix.ALIGNMENT)
device = phoenix.Device(0)
registration = device.register(memory)
pending = phoenix.submit_read([phoenix.Request(FD, memory, BLOCK, device=device)])
def body():
    try:
        pending.wait()
        return False
    except OSError as error:
        assert error.errno == 22, error
    ok = check(16, registration)
    registration.close()
    device.close()
    return ok and use()
assert [reap(fork(body)) for _ in range(3)] == [0] * 3
assert pending.wait().failed == 0 and check(16, registration)
""")


def test_subprocess_while_threads_read(tmp_path):
    run(tmp_path, """
import subprocess
assert use()
stop, wrong = False, []
def reader():
    while not stop:
        check() or wrong.append(1)
threads = [threading.Thread(target=reader) for _ in range(2)]
for t in threads: t.start()
for _ in range(10):
    p = subprocess.run(["/bin/sh", "-c", "ls /proc/self/fd; echo yes"], capture_output=True, text=True, timeout=20)
    assert p.stdout.split() == ["0", "1", "2", "3", "yes"], p.stdout  # 3: ls's own
    p = subprocess.run(["/bin/sh", "-c", "echo yes"], capture_output=True, text=True, timeout=20, preexec_fn=lambda: check())
    assert p.stdout == "yes\\n"
stop = True
for t in threads: t.join()
assert not wrong
""")


def test_exit_of_parent_and_child_with_threads_inside_calls(tmp_path):
    run(tmp_path, """
def endless():
    while True:
        check(64)
assert use()
for _ in range(4): threading.Thread(target=endless, daemon=True).start()
for end in (sys.exit, os._exit) * 2:
    pid = os.fork()
    if pid == 0:
        for _ in range(4): threading.Thread(target=endless, daemon=True).start()
        check()
        end(0)
    assert reap(pid, 60) == 0
""")


# ---- signals ----

def test_python_signal_handlers_before_and_after_first_use(tmp_path):
    run(tmp_path, """
SIGNALS = [signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGCHLD, signal.SIGPIPE, signal.SIGURG, signal.SIGPROF]
hits = []
def handler(number, frame): hits.append(number)
def all_arrive():
    for s in SIGNALS:
        hits.clear()
        os.kill(os.getpid(), s)
        end = time.monotonic() + 20
        while s not in hits and time.monotonic() < end: pass
        if s not in hits: raise RuntimeError("%s is lost" % s)
    return True
for s in SIGNALS[::2]: signal.signal(s, handler)
assert use()
for s in SIGNALS[1::2]: signal.signal(s, handler)
assert all_arrive() and use() and all_arrive()
assert reap(fork(lambda: all_arrive() and use() and all_arrive())) == 0
""")


def test_an_alarm_storm_changes_no_result(tmp_path):
    run(tmp_path, """
hits = 0
def handler(number, frame):
    global hits
    hits += 1
def storm():
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    ok = all(use() for _ in range(10))
    signal.setitimer(signal.ITIMER_REAL, 0)
    return ok and hits > 0
assert storm()
hits = 0
assert reap(fork(storm), 60) == 0
""")


def interrupted(tmp_path, text):
    """Runs a program that prints "go" and then reads for ever; sends SIGINT."""
    command, env = program(tmp_path, """
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job inherits SIG_IGN
LONG = [phoenix.Request(FD, bytearray(BLOCK * BLOCKS)) for _ in range(200)]
def long():
    "About 400 MiB; complete, or False."
    return phoenix.read_batch(LONG).failed == 0
def go():
    print("go", flush=True)
""" + text)
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as p:
        assert p.stdout.readline() == "go\n"
        p.send_signal(signal.SIGINT)
        try:
            out, err = p.communicate(timeout=60)
        finally:
            p.kill()  # only if it has not ended
        assert p.returncode == 0, f"status {p.returncode}\n{out}\n{err}"
        return out


def test_ctrl_c_takes_effect_at_the_end_of_the_batch(tmp_path):
    """The ABI has no way to give up a batch: Python's handler, and with it
    KeyboardInterrupt, comes when the call has returned, complete."""
    assert interrupted(tmp_path, """
hits = []
signal.signal(signal.SIGINT, lambda number, frame: hits.append(1))
go()
while not hits:
    assert long(), "the signal cut a batch short"
print("whole")
""") == "whole\n"
    assert interrupted(tmp_path, """
try:
    go()
    while True: long()
except KeyboardInterrupt:
    assert use()
    print("interrupted")
""") == "interrupted\n"


def test_ctrl_c_while_waiting_for_an_async_batch(tmp_path):
    assert interrupted(tmp_path, """
try:
    go()
    while True:
        pending = phoenix.submit_read(LONG)
        pending.wait()
except KeyboardInterrupt:
    pending = None  # its end may come after the wait has had it
    assert use()
    print("interrupted")
""") == "interrupted\n"


def test_ctrl_c_in_a_forked_child(tmp_path):
    assert interrupted(tmp_path, """
assert use()
parent_end, child_end = os.pipe()
def body():
    try:
        os.write(child_end, b"x")
        while True: long()
    except KeyboardInterrupt:
        return use()
pid = fork(body)
os.read(parent_end, 1)
signal.signal(signal.SIGINT, lambda number, frame: os.kill(pid, number))
go()
assert reap(pid) == 0
""") == ""


# ---- faulthandler ----

@pytest.mark.parametrize("where", ["parent", "child before its first call", "child after its first call"])
@pytest.mark.parametrize("when", ["at the start of Python", "before the first call", "after the first call"])
def test_faulthandler_reports_and_the_process_dies_of_the_signal(tmp_path, when, where):
    out, err = run(tmp_path, f"""
import ctypes
when, where = {when!r}, {where!r}
if when.startswith("before"): faulthandler.enable()
assert use()
if when.startswith("after"): faulthandler.enable()
def crash():
    if where.endswith("child after its first call"): assert use()
    ctypes.string_at(0)
pid = os.fork()
if pid == 0:
    if where == "parent": os._exit(0)
    crash()
status = reap(pid)
if where == "parent": crash()
sys.exit(0 if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGSEGV else 9)
""", status=-signal.SIGSEGV if where == "parent" else 0, **({"PYTHONFAULTHANDLER": "1"} if when.startswith("at") else {}))
    assert err.count("Fatal Python error: Segmentation fault") == 1 and "in crash" in err, err
