"""Loading libphoenix.so into Python, with nothing but ctypes: what the load
costs, which environment counts, and multiprocessing. Every test is a Python of
its own, because the library starts once in a process."""
import errno
import json
import os
import re
import subprocess
import sys
import textwrap

import pytest

import need

TOP = os.environ.get("PHX_TOP") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LIB = os.path.abspath(os.environ.get("PHX_LIB") or os.path.join(TOP, "build", "libphoenix.so"))

PRELUDE = """
import ctypes, errno, json, os, sys

class Req(ctypes.Structure):
    _fields_ = [("fd", ctypes.c_int), ("device_id", ctypes.c_int), ("buf", ctypes.c_void_p),
                ("buf_offset", ctypes.c_int64), ("nbytes", ctypes.c_size_t),
                ("f_offset", ctypes.c_int64), ("result", ctypes.c_ssize_t)]

def load():
    lib = ctypes.CDLL({lib!r}, use_errno=True)
    lib.phxfs_get_page_size.restype = ctypes.c_uint64
    lib.phxfs_io_engine_name.restype = ctypes.c_char_p
    lib.phxfs_read.restype = ctypes.c_ssize_t
    lib.phxfs_read.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_int64, ctypes.c_ssize_t, ctypes.c_int64]
    return lib

def threads():
    return len(os.listdir("/proc/self/task"))

def read_batch(lib, count=1, size=4096):
    "Reads of fresh random data; returns how many failed, and whether it arrived."
    memory, fd = ctypes.create_string_buffer(count * size), os.memfd_create("data")
    os.write(fd, os.urandom(count * size))
    reqs = (Req * count)(*[Req(fd, -1, ctypes.addressof(memory), i * size, size, i * size, 0) for i in range(count)])
    failed = lib.phxfs_read_batch(reqs, count)
    right = os.pread(fd, count * size, 0) == memory.raw
    os.close(fd)
    return failed, right

say = lambda **kw: print(json.dumps(kw))
"""


def python(code, **env):
    """Runs code after the prelude; returns what it said (the last line, JSON)."""
    base = {k: v for k, v in os.environ.items() if not k.startswith("PHXFS_")}
    text = PRELUDE.format(lib=LIB) + textwrap.dedent(code)
    p = subprocess.run([sys.executable, "-W", "ignore::DeprecationWarning", "-c", text], env={**base, **env}, capture_output=True, text=True, timeout=120)
    assert p.returncode == 0, f"exit status {p.returncode}\nstdout: {p.stdout}\nstderr: {p.stderr}"
    assert p.stderr == "", f"stderr: {p.stderr}"
    return json.loads(p.stdout.splitlines()[-1])


def test_load_under_bind_now_starts_no_thread_and_takes_at_most_one_mib():
    got = python(
        """
        def rss():
            return next(int(l.split()[1]) for l in open("/proc/self/status") if l.startswith("VmRSS"))
        rss(), threads(), open("/proc/self/maps").read(), ctypes.CDLL(None)
        t, r = threads(), rss()
        lib = ctypes.CDLL({!r})
        say(threads=threads() - t, kib=rss() - r, mapped="libphoenix.so" in open("/proc/self/maps").read())
        """.format(LIB),
        LD_BIND_NOW="1",
    )
    assert got["mapped"], "libphoenix.so is not in /proc/self/maps"
    assert got["threads"] == 0, f"the load started {got['threads']} threads, want 0"
    assert got["kib"] <= 1024, f"the load made {got['kib']} KiB resident, want at most 1024"


def test_load_with_rtld_now_and_global():
    got = python("lib = ctypes.CDLL({!r}, mode=os.RTLD_NOW | os.RTLD_GLOBAL); say(r=lib.phxfs_open(99))".format(LIB))
    assert got["r"] == -1


def test_vendor_set_after_load():
    got = python(
        """
        lib = load()
        os.environ["PHXFS_VENDOR"] = "HOST"
        first = lib.phxfs_find_dev(3), lib.phxfs_open(0)
        os.environ["PHXFS_VENDOR"] = "NVIDIA"  # too late
        say(first=first, later=lib.phxfs_open(1), page=lib.phxfs_get_page_size())
        """
    )
    assert got == {"first": [3, 0], "later": 0, "page": 65536}


def test_default_vendor_without_a_node_is_enoent(tmp_path):
    got = python(
        """
        lib = load()
        os.environ["PHXFS_DEV_DIR"] = {!r}
        r = lib.phxfs_open(0)
        say(r=r, e=ctypes.get_errno())
        """.format(str(tmp_path))
    )
    assert got == {"r": -1, "e": errno.ENOENT}


def test_dev_dir_set_after_load(tmp_path):
    (tmp_path / "phxfs_dev2").write_bytes(b"")
    got = python(
        """
        lib = load()
        os.environ.update(PHXFS_VENDOR="NVIDIA", PHXFS_DEV_DIR={!r})
        say(there=lib.phxfs_open(2), absent=lib.phxfs_open(1), close=lib.phxfs_close(2))
        """.format(str(tmp_path))
    )
    assert got == {"there": 0, "absent": -1, "close": 0}


def test_log_and_log_file_set_after_load(tmp_path):
    log = tmp_path / "log"
    got = python(
        """
        lib = load()
        os.environ.update(PHXFS_VENDOR="HOST", PHXFS_LOG="error", PHXFS_LOG_FILE={!r})
        r = lib.phxfs_open(42)
        say(r=r, e=ctypes.get_errno(), pid=os.getpid())
        """.format(str(log))
    )
    assert (got["r"], got["e"]) == (-1, errno.EINVAL)
    lines = log.read_text().splitlines()
    assert len(lines) == 1, f"one line for one failure, got: {lines}"
    want = rf"libphoenix\[{got['pid']}\] error call=phxfs_open device=42 .*errno=EINVAL reason=\".+\""
    assert re.fullmatch(want, lines[0]), f"got {lines[0]!r}, want {want}"


def test_engine_set_after_load():
    got = python(
        """
        lib = load()
        os.environ.update(PHXFS_VENDOR="HOST", PHXFS_IO_ENGINE="sync")
        say(name=lib.phxfs_io_engine_name().decode(), batch=read_batch(lib))
        """
    )
    assert got == {"name": "sync", "batch": [0, True]}


@pytest.mark.parametrize("workers", [1, 40])
def test_workers_set_after_load(workers):
    got = python(
        """
        import time
        lib = load()
        os.environ.update(PHXFS_VENDOR="HOST", PHXFS_WORKERS="{0}")
        right = [read_batch(lib, 64, 65536) for _ in range(20)]
        end = time.monotonic() + 20  # threads come up one after the other
        while threads() < {0} + 1 and time.monotonic() < end:
            os.sched_yield()
        say(right=right, threads=threads())
        """.format(workers)
    )
    assert got["right"] == [[0, True]] * 20
    assert workers + 1 <= got["threads"] <= workers + 48, f"{got['threads']} threads with PHXFS_WORKERS={workers}"


@pytest.mark.parametrize("depth", [8, 1024])
def test_queue_depth_set_after_load(depth):
    got = python(
        """
        def entries():  # fdinfo of a ring, kernel 5.17 and later
            for fd in os.listdir("/proc/self/fdinfo"):
                try:
                    for line in open("/proc/self/fdinfo/" + fd):
                        if line.startswith("SqMask:"):
                            yield int(line.split()[1], 16) + 1
                except OSError:
                    pass
        lib = load()
        os.environ.update(PHXFS_VENDOR="HOST", PHXFS_QUEUE_DEPTH="{}")
        right = read_batch(lib, 300)
        say(right=right, engine=lib.phxfs_io_engine_name().decode(), entries=sorted(entries()))
        """.format(depth)
    )
    assert got["right"] == [0, True]
    if got["engine"] != "io_uring":
        need.missing("io_uring", "the engine is " + got["engine"])
    if not got["entries"]:
        need.pointless("a kernel that tells the size of a ring")
    assert set(got["entries"]) >= {depth} and max(got["entries"]) == depth


@pytest.mark.parametrize("mode, number", [("full", 0), ("host_staging", 2)])
def test_mode_set_after_load(mode, number):
    got = python(
        """
        lib = load()
        os.environ.update(PHXFS_VENDOR="HOST", PHXFS_MODE="{}")
        say(open=lib.phxfs_open(0), mode=lib.phxfs_get_map_mode(0))
        """.format(mode)
    )
    assert got == {"open": 0, "mode": number}


@pytest.mark.parametrize("name", ["PHXFS_QUEUE_DEPTH", "PHXFS_WORKERS", "PHXFS_STAGING_MB", "PHXFS_MODE", "PHXFS_LOG"])
def test_bad_value_set_after_load_is_told(tmp_path, name):
    log = tmp_path / "log"
    got = python(
        """
        lib = load()
        os.environ.update(PHXFS_VENDOR="HOST", PHXFS_LOG="error", PHXFS_LOG_FILE={!r})
        os.environ[{!r}] = "nonsense"
        say(mode=lib.phxfs_find_dev(3))
        """.format(str(log), name)
    )
    assert got == {"mode": 3}
    assert re.fullmatch(rf'libphoenix\[\d+\] error call=environment errno=EINVAL reason="{name} is .*"\n', log.read_text())


def test_sysfs_root_set_after_load(tmp_path):
    fake = os.path.join(os.path.dirname(LIB), "test-c", "libcuda.so.1")
    if not os.path.exists(fake):
        need.missing("stand-in", f"that for libcuda ({fake}): make -C test/c")
    node = tmp_path / "class" / "phxfs-generic" / "phxfs_dev5"
    node.mkdir(parents=True)
    (node / "pci_bdf").write_text("0000:3B:00.0\n")
    got = python(
        """
        ctypes.CDLL({!r})
        lib = load()
        os.environ.update(PHXFS_VENDOR="NVIDIA", PHXFS_SYSFS_ROOT={!r})
        say(one=lib.phxfs_find_dev(1), none=lib.phxfs_find_dev(0), e=ctypes.get_errno())
        """.format(fake, str(tmp_path))
    )
    assert got == {"one": 5, "none": -1, "e": errno.ENODEV}


def test_host_gomaxprocs_and_godebug_do_not_reach_the_runtime():
    got = python(
        """
        lib = load()
        os.environ.update(PHXFS_VENDOR="HOST")
        say(batch=[read_batch(lib, 64) for _ in range(5)])
        """,
        GOMAXPROCS="1", GODEBUG="schedtrace=1,gctrace=1,inittrace=1", GOTRACEBACK="crash", GOGC="1",
    )  # python() checks that stderr is empty
    assert got["batch"] == [[0, True]] * 5


MULTI = """
import multiprocessing
lib = load()
os.environ["PHXFS_VENDOR"] = "HOST"
def work(i):
    ok = lib.phxfs_open(i % 8) == 0
    batch = [read_batch(lib, 16) for _ in range(5)]
    return ok and batch == [(0, True)] * 5
ctx = multiprocessing.get_context("fork")
"""


def test_multiprocessing_fork_before_first_use():
    got = python(
        MULTI + textwrap.dedent(
            """
            with ctx.Pool(4) as pool:
                results = pool.map(work, range(32), chunksize=1)
            say(right=all(results), after=read_batch(lib))
            """
        )
    )
    assert got["right"], "a worker's open or batch failed"
    assert got["after"] == [0, True]


def test_multiprocessing_fork_after_use():
    got = python(
        MULTI + textwrap.dedent(
            """
            lib.phxfs_open(0)
            with ctx.Pool(4) as pool:
                results = pool.map(work, range(32), chunksize=1)
            say(right=all(results), after=read_batch(lib))
            """
        )
    )
    assert got == {"right": True, "after": [0, True]}
