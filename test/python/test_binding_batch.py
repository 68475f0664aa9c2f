"""The ctypes binding: batches, waited for and not."""
import errno
import gc
import os

import pytest

from binding_kit import DATA, PAGE, fails, phoenix, pieces, seen


# ---- batches ----

def test_read_batch_fills_and_counts_the_short_one(device, fd, buf):
    with device.register(buf) as r:
        results = phoenix.read_batch(pieces(fd, buf, device))
        assert seen(r)[:len(DATA)] == DATA
    assert results == [PAGE, PAGE, PAGE, 100] and results.failed == 1


def test_write_batch(fd):
    results = phoenix.write_batch([phoenix.Request(fd, b"one", offset=0), phoenix.Request(fd, b"two", offset=3)])
    assert results == [3, 3] and results.failed == 0
    assert os.pread(fd, 6, 0) == b"onetwo"


def test_empty_batches():
    assert phoenix.read_batch([]) == [] and phoenix.write_batch(iter([])).failed == 0
    assert phoenix.submit_read([]).wait() == []


def test_failing_requests_do_not_disturb_the_others(device, fd, buf):
    Request = phoenix.Request
    requests = [
        Request(fd, buf, 10, device=device),          # not registered
        Request(fd, buf, 10),                         # right
        Request(-1, buf, 10),                         # no such file
        Request(fd, buf, 10, offset=-1),              # wrong in itself
        Request(fd, 0, 0),                            # NULL, even with 0 bytes
        Request(fd, buf, 10, device=8),               # no such device
    ]
    results = phoenix.read_batch(requests)
    assert results == [-errno.EFAULT, 10, -errno.EBADF, -errno.EFAULT, -errno.EFAULT, -errno.EFAULT]
    assert results.failed == 5


def test_request_outside_its_object_is_refused_before_any_io(fd, buf):
    for bad in (phoenix.Request(fd, buf, len(buf) + 1), phoenix.Request(fd, buf, 1, buf_offset=-1),
                phoenix.Request(fd, 4096, -1)):
        with pytest.raises(ValueError):
            phoenix.read_batch([phoenix.Request(fd, buf, 10), bad])
    assert not any(buf[:10])


# ---- asynchronous batches ----

def test_submit_read_then_wait(device, fd, buf):
    with device.register(buf) as r:
        pending = phoenix.submit_read(pieces(fd, buf, device))
        assert pending.results is None
        results = pending.wait()
        assert seen(r)[:len(DATA)] == DATA
    assert results == [PAGE, PAGE, PAGE, 100] and results.failed == 1
    assert results is pending.results


def test_submit_write_then_wait(fd):
    assert phoenix.submit_write([phoenix.Request(fd, b"abc", offset=9)]).wait() == [3]
    assert os.pread(fd, 3, 9) == b"abc"


def test_a_handle_ends_once(fd, buf):
    waited = phoenix.submit_read(pieces(fd, buf))
    waited.wait()
    fails(errno.EINVAL, waited.wait)
    fails(errno.EINVAL, waited.destroy)
    destroyed = phoenix.submit_read(pieces(fd, buf))
    destroyed.destroy()
    fails(errno.EINVAL, destroyed.wait)
    assert destroyed.results is None and waited.results.failed == 1


def test_context_manager_waits(fd, buf):
    with phoenix.submit_read(pieces(fd, buf)) as pending:
        pass
    assert pending.results == [PAGE, PAGE, PAGE, 100] and buf[:len(DATA)] == DATA


def test_context_manager_destroys_after_an_exception(fd, buf):
    with pytest.raises(KeyError):
        with phoenix.submit_read(pieces(fd, buf)) as pending:
            raise KeyError
    assert pending.results is None
    fails(errno.EINVAL, pending.wait)


def test_more_completed_batches_than_the_queue_holds(fd, buf):
    many = []
    for _ in range(40):  # a sync batch completes all earlier ones
        many.append(phoenix.submit_read(pieces(fd, buf)))
        phoenix.read_batch(pieces(fd, buf))
    assert [p.wait().failed for p in many] == [1] * 40


def test_pending_batch_keeps_memory_and_file(path):
    store = bytearray(4 * PAGE)
    f = open(path, "rb")
    pending = phoenix.submit_read(pieces(f, store))
    with pytest.raises(BufferError):
        store.extend(b"x")
    view = memoryview(store)
    del store, f
    gc.collect()
    assert pending.wait() == [PAGE, PAGE, PAGE, 100]
    assert view[:len(DATA)] == DATA


def test_forgotten_batch_is_finished_and_lets_memory_go(fd):
    store = bytearray(4 * PAGE)
    phoenix.submit_read(pieces(fd, store))
    gc.collect()
    store.extend(b"x")
    assert store[:len(DATA)] == DATA


def test_sync_batch_comes_after_the_async_one_before_it(fd):
    back = bytearray(4)
    for i in range(200):
        word = i.to_bytes(4, "little")
        pending = phoenix.submit_write([phoenix.Request(fd, word)])
        phoenix.read_batch([phoenix.Request(fd, back), phoenix.Request(fd, bytearray(4), offset=8)])
        assert back == word
        pending.wait()
