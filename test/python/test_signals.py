"""Python's ways to wait for signals and to end, with the library in use. (Ctrl-C,
faulthandler and storms: test_fork.py.)"""
import os
import signal
import subprocess
import sys
import time

import pytest

from binding_kit import TOP, script

READS = """
import os, signal, sys, threading, phoenix
fd = os.memfd_create("data")
data = os.urandom(64 * 4096)
os.write(fd, data)
def read_all():
    buf = bytearray(len(data))
    view = memoryview(buf)
    done = phoenix.read_batch([phoenix.Request(fd, view[i * 4096:(i + 1) * 4096], offset=i * 4096) for i in range(64)])
    assert done.failed == 0 and buf == data
"""


def test_sigwait_gets_what_every_thread_blocks():
    script(READS + """
signals = {signal.SIGCHLD, signal.SIGPROF, signal.SIGALRM, signal.SIGRTMIN, signal.SIGTERM}
signal.pthread_sigmask(signal.SIG_BLOCK, signals)
read_all()
for i in range(100):
    for s in signals:
        os.kill(os.getpid(), s)
        got = signal.sigtimedwait(signals, 20)
        assert got is not None and got.si_signo == s, (i, s, got)
pid = os.spawnvp(os.P_NOWAIT, "true", ["true"])
assert signal.sigtimedwait({signal.SIGCHLD}, 20).si_pid == pid
read_all()
""", PHXFS_VENDOR="HOST")


def test_the_mask_of_each_thread_is_its_own():
    script(READS + """
def work(mask):
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    read_all()
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before, mask
threads = [threading.Thread(target=work, args=(m,)) for m in ([], signal.valid_signals(), [signal.SIGSEGV, signal.SIGCHLD])]
failed = []
threading.excepthook = lambda a: failed.append(a)
for t in threads: t.start()
for t in threads: t.join()
assert not failed, failed
""", PHXFS_VENDOR="HOST")


def test_timers_and_wakeup_fd():
    script(READS + """
import select
r, w = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
signal.set_wakeup_fd(w)
hits = []
for s in (signal.SIGALRM, signal.SIGPROF, signal.SIGVTALRM):
    signal.signal(s, lambda n, f: hits.append(n))
read_all()
for timer in (signal.ITIMER_REAL, signal.ITIMER_PROF, signal.ITIMER_VIRTUAL):
    signal.setitimer(timer, 0.001, 0.001)
while set(hits) != {signal.SIGALRM, signal.SIGPROF, signal.SIGVTALRM} or len(hits) < 200:
    read_all()
assert select.select([r], [], [], 0)[0]
for timer in (signal.ITIMER_REAL, signal.ITIMER_PROF, signal.ITIMER_VIRTUAL):
    signal.setitimer(timer, 0)  # Python takes its handlers away before it ends
""", PHXFS_VENDOR="HOST")


@pytest.mark.parametrize("how,status", [("sys.exit(3)", 3), ("os._exit(4)", 4), ("os.kill(os.getpid(), signal.SIGTERM)", -15),
                                        ("os.abort()", -6), ("raise SystemExit(5)", 5)])
@pytest.mark.parametrize("where", ["main", "handler"])
def test_the_process_ends_while_threads_read(how, status, where):
    code = READS + """
begun = threading.Barrier(5)
def forever():
    read_all()
    begun.wait()
    while True:
        try: read_all()
        except OSError: return
for _ in range(4): threading.Thread(target=forever, daemon=True).start()
begun.wait()
def end(*_): %s
if %r == "main": end()
signal.signal(signal.SIGUSR1, end)
signal.setitimer(signal.ITIMER_REAL, 20)
threading.Thread(target=lambda: os.kill(os.getpid(), signal.SIGUSR1), daemon=True).start()
while True: read_all()
""" % (how, where)
    begin = time.monotonic()
    p = subprocess.run([sys.executable, "-c", code], timeout=60, stderr=subprocess.PIPE, text=True,
                       env=dict(os.environ, PYTHONPATH=os.path.join(TOP, "examples", "python"), PHXFS_VENDOR="HOST"))
    assert p.returncode == status, (p.returncode, p.stderr)
    assert time.monotonic() - begin < 20
    assert "panic" not in p.stderr and "fatal error" not in p.stderr, p.stderr
    assert signal.SIGTERM == 15 and signal.SIGABRT == 6
