"""What the tests of the ctypes binding share: the binding itself, on the host
device or on emulated ones (run_pytest.py --emulate), and helpers. Fixtures are in
conftest.py."""
import ctypes
import errno
import os
import subprocess
import sys
import threading

import pytest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "examples", "python"))
import phoenix  # noqa: E402

# After the import and before the first call: that is early enough.
EMULATED = "T_EMULATED" in os.environ
VENDOR = "NVIDIA" if EMULATED else "HOST"
os.environ["PHXFS_VENDOR"] = VENDOR

PAGE = 65536
DATA = os.urandom(3 * PAGE + 100)  # the file of most tests: ends inside a page


def fails(number, function, *args, **kw):
    """function must raise OSError with this errno."""
    with pytest.raises(OSError) as caught:
        function(*args, **kw)
    name = errno.errorcode[number]
    assert errno.errorcode.get(caught.value.errno) == name, "got %r, want %s" % (caught.value, name)
    return caught.value


def seen(registration):
    """Registered memory as the CPU sees it: on the host device the memory itself."""
    return memoryview((ctypes.c_char * registration.nbytes).from_address(registration.target)).cast("B")


def script(text, **env):
    """Runs text in a Python of its own; returns what it printed."""
    env = dict(os.environ, PYTHONPATH=os.path.join(TOP, "examples", "python"), **env)
    p = subprocess.run([sys.executable, "-c", text], env=env, cwd=TOP, timeout=120,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert p.returncode == 0, "status %d, printed:\n%s" % (p.returncode, p.stdout)
    return p.stdout


def pieces(fd, buf, device=phoenix.CPU):
    """Reads that cover the file, the last one short."""
    return [phoenix.Request(fd, buf, PAGE, offset=i * PAGE, buf_offset=i * PAGE, device=device)
            for i in range(4)]


def in_threads(count, body):
    """Runs body(i) in count threads that begin together; returns their results."""
    barrier, results = threading.Barrier(count), [None] * count

    def run(i):
        barrier.wait()
        try:
            results[i] = body(i)
        except BaseException as error:
            results[i] = error

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return results
