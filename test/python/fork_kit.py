"""Programs of the tests of forked Python processes: each runs in a Python of its
own, from a file, because spawn and forkserver import the main module."""
import os
import subprocess
import sys

from binding_kit import TOP, VENDOR

PRELUDE = """
import faulthandler, multiprocessing, os, random, signal, sys, threading, time, zlib
import ctypes
os.environ["PHXFS_VENDOR"] = {vendor!r}
import phoenix

BLOCK, BLOCKS = 4096, 512
PATH = {path!r}
def block(i):
    return b"".join(b"%08x" % (i * BLOCK + k) for k in range(0, BLOCK, 8))
if not os.path.exists(PATH):
    with open(PATH, "wb") as f:
        f.write(b"".join(block(i) for i in range(BLOCKS)))
FD = os.open(PATH, os.O_RDONLY)

def seen(registration):
    "Registered memory as the CPU sees it."
    return memoryview((ctypes.c_char * registration.nbytes).from_address(registration.target)).cast("B")

def check(n=16, registration=None, asynchronous=False):
    "Reads n random blocks; True if every byte is right."
    buf, device, data = bytearray(n * BLOCK), phoenix.CPU, None
    if registration:
        buf, device, data = registration.address, registration.device, seen(registration)
    which = [random.randrange(BLOCKS) for _ in range(n)]
    requests = [phoenix.Request(FD, buf, BLOCK, offset=b * BLOCK, buf_offset=i * BLOCK, device=device)
                for i, b in enumerate(which)]
    results = phoenix.submit_read(requests).wait() if asynchronous else phoenix.read_batch(requests)
    data = data or buf
    return results.failed == 0 and all(data[i * BLOCK:(i + 1) * BLOCK] == block(b) for i, b in enumerate(which))

def use(_=None):
    "Everything a process does with the library."
    memory = phoenix.aligned(2 * phoenix.ALIGNMENT)
    with phoenix.Device(1) as device, device.register(memory) as registration:
        return check() and check(8, asynchronous=True) and check(16, registration)

def reap(pid, seconds=20):
    "The wait status of a child, which must come within the time."
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        got, status = os.waitpid(pid, os.WNOHANG)
        if got:
            return status
        time.sleep(0.002)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    raise TimeoutError("a child hangs")

def fork(body):
    "Runs body in a child; the child ends with 0 if that is true."
    pid = os.fork()
    if pid:
        return pid
    try:
        os._exit(0 if body() else 3)
    except BaseException as error:
        os.write(2, repr(error).encode())
        os._exit(4)
"""


def program(tmp_path, text, name="program.py"):
    """A file with the prelude and text, and the environment to run it in."""
    path = tmp_path / name
    path.write_text(PRELUDE.format(path=str(tmp_path / "blocks"), vendor=VENDOR) + text)
    env = {k: v for k, v in os.environ.items() if not k.startswith("PHXFS_")}
    env["PYTHONPATH"] = os.path.join(TOP, "examples", "python")
    return [sys.executable, "-W", "ignore::DeprecationWarning", str(path)], env


def run(tmp_path, text, status=0, timeout=120, **more):
    """Runs it to its end; returns (stdout, stderr)."""
    command, env = program(tmp_path, text)
    p = subprocess.run(command, env={**env, **more}, capture_output=True, text=True, timeout=timeout)
    assert p.returncode == status, f"status {p.returncode}, want {status}\nstdout: {p.stdout}\nstderr: {p.stderr}"
    return p.stdout, p.stderr
