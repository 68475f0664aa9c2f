"""The ctypes binding: load and environment, threads, leaks, exit, fork."""
import errno
import os

from binding_kit import DATA, PAGE, VENDOR, fails, in_threads, phoenix, pieces, script, seen


# ---- load and environment ----

def test_import_starts_nothing():
    assert script("import os, phoenix; print(len(os.listdir('/proc/self/task')))") == "1\n"


def test_vendor_set_after_import_takes_effect():
    out = script("import os, phoenix; os.environ['PHXFS_VENDOR'] = 'HOST'; print(phoenix.find_device(7))",
                 PHXFS_VENDOR="NVIDIA")
    assert out == "7\n"


def test_missing_device_node_is_file_not_found(tmp_path):
    out = script("import phoenix\ntry: phoenix.Device(0)\nexcept FileNotFoundError as e: print(e.errno)",
                 PHXFS_VENDOR="NVIDIA", PHXFS_DEV_DIR=str(tmp_path))
    assert out == "%d\n" % errno.ENOENT


def test_missing_library_says_what_to_do(tmp_path):
    out = script("try: import phoenix\nexcept OSError as e: print(e)", PHX_LIBRARY=str(tmp_path / "no.so"))
    assert "make build" in out and "PHX_LIBRARY" in out and "no.so" in out


def test_log_set_after_import_names_the_failing_call(tmp_path):
    log = tmp_path / "log"
    script("""
import os, phoenix
os.environ.update(PHXFS_VENDOR="HOST", PHXFS_LOG="error", PHXFS_LOG_FILE=%r)
device = phoenix.Device(0)
try: device.read(0, 0x10000, 512)
except OSError: pass
""" % str(log))
    line = log.read_text()
    for part in ("libphoenix[", "] error ", "call=phxfs_read", "device=0", "errno=EFAULT", 'reason="'):
        assert part in line, line


# ---- threads, leaks, process ends ----

def test_threads_share_a_device(fd):
    def work(i):
        with phoenix.Device(0) as device:
            for _ in range(20):
                memory = phoenix.aligned(4 * PAGE)
                with device.register(memory) as r:
                    assert device.read(fd, memory, PAGE, offset=PAGE) == PAGE
                    assert seen(r)[:PAGE] == DATA[PAGE:2 * PAGE]
                    assert phoenix.read_batch(pieces(fd, memory, device)).failed == 1
                    assert seen(r)[:len(DATA)] == DATA
                    with phoenix.submit_read(pieces(fd, memory, device)) as pending:
                        pass
                    assert pending.results.failed == 1
        return "done"

    assert in_threads(8, work) == ["done"] * 8


def test_two_threads_waiting_on_one_batch_one_gets_it(fd, buf):
    for _ in range(20):
        pending = phoenix.submit_read(pieces(fd, buf))
        outcome = in_threads(2, lambda i: pending.wait())
        won = [r for r in outcome if isinstance(r, phoenix.Results)]
        lost = [r for r in outcome if isinstance(r, OSError) and r.errno == errno.EINVAL]
        assert len(won) == 1 and len(lost) == 1, outcome


def test_threads_closing_one_registration(device, buf):
    r = device.register(buf)
    assert in_threads(4, lambda i: r.close()) == [None] * 4


def test_errno_belongs_to_the_thread(fd):
    wanted = [errno.EBADF, errno.EINVAL]

    def work(i):
        for _ in range(200):
            try:
                phoenix.read(-1 if i == 0 else fd, bytearray(1), offset=-i)
            except OSError as error:
                if error.errno != wanted[i]:
                    return error
        return None

    assert in_threads(2, work) == [None, None]


def test_nothing_leaks_over_many_rounds(fd, buf):
    def rounds(n):
        for _ in range(n):
            with phoenix.Device(6) as device, device.register(buf):
                phoenix.submit_read(pieces(fd, buf, device)).wait()
            fails(errno.EINVAL, phoenix.Device, 9)

    rounds(10)
    fds, threads = len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))
    rounds(200)
    # The runtime may start one more of its threads at any time, but not one a round;
    # a new thread holds a descriptor for a moment (malloc's arenas).
    assert len(os.listdir("/proc/self/fd")) < fds + 20
    assert len(os.listdir("/proc/self/task")) < threads + 20


def test_exit_with_everything_left_open_writes_what_was_submitted(tmp_path):
    out = tmp_path / "out"
    script("""
import ctypes, os, phoenix
fd = os.open(%r, os.O_WRONLY | os.O_CREAT)
device = phoenix.Device(0)
buf = phoenix.aligned(1 << 20)
registration = device.register(buf)
ctypes.memset(registration.target, ord("x"), len(buf))
pending = [phoenix.submit_write([phoenix.Request(fd, buf, offset=i << 20, device=device)]) for i in range(16)]
""" % str(out), PHXFS_VENDOR=VENDOR)
    assert out.read_bytes() == b"x" * (16 << 20)


CHILD = """
import errno, os, phoenix
{parent}
pid = os.fork()
if pid == 0:
    try:
        {child}
        os._exit(0)
    except BaseException as error:
        print(repr(error), flush=True)
        os._exit(1)
assert os.waitpid(pid, 0)[1] == 0
"""


def test_child_forked_before_the_first_call_works(path):
    script(CHILD.format(parent="f = open(%r, 'rb')" % str(path), child="""
        buf = phoenix.aligned(65536)
        with phoenix.Device(0) as device, device.register(buf):
            assert phoenix.read_batch([phoenix.Request(f, buf, device=device)] * 2).failed == 0
"""), PHXFS_VENDOR=VENDOR)


def test_child_forked_after_use_works(path):
    script(CHILD.format(parent="f = open(%r, 'rb'); phoenix.engine_name()" % str(path), child="""
        assert phoenix.read(f, bytearray(100)) == 100
        assert phoenix.read_batch([phoenix.Request(f, bytearray(100))]).failed == 0
"""), PHXFS_VENDOR=VENDOR)
