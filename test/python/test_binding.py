"""The ctypes binding (examples/python/phoenix.py): devices, registrations, single
transfers, buffers."""
import array
import ctypes
import errno
import gc
import mmap
import os

import pytest

import need
from binding_kit import DATA, PAGE, fails, phoenix, seen


# ---- questions ----

def test_page_size():
    assert phoenix.page_size() == PAGE


def test_engine_name():
    assert phoenix.engine_name() in ("sync", "io_uring")


def test_find_device_is_identity_on_the_host():
    assert [phoenix.find_device(i) for i in range(8)] == list(range(8))


def test_find_device_errors():
    fails(errno.EINVAL, phoenix.find_device, -1)
    fails(errno.ENODEV, phoenix.find_device, 8)


# ---- devices ----

@pytest.mark.parametrize("number", [-1, 8, 2**31 - 1])
def test_open_of_a_bad_index_is_einval(number):
    fails(errno.EINVAL, phoenix.Device, number)


def test_integers_too_large_for_c_are_refused_not_cut_off(buf):
    with pytest.raises(OverflowError):
        phoenix.Device(1 << 32)
    with pytest.raises(OverflowError):
        phoenix.read(1 << 32, buf, 1)
    with pytest.raises(OverflowError):
        phoenix.read(0, buf, 1, offset=1 << 63)


def test_opens_are_counted(buf):
    first, second = phoenix.Device(1), phoenix.Device(1)
    first.close()
    second.register(buf).close()
    second.close()
    fails(errno.ENODEV, second.register, buf)


def test_second_close_does_nothing():
    device = phoenix.Device(2)
    device.close()
    device.close()


def test_collected_device_is_closed():
    phoenix.Device(3)
    gc.collect()
    assert phoenix._lib.phxfs_close(3) == -1 and ctypes.get_errno() == errno.ENODEV


def test_close_of_the_device_ends_its_registrations(fd, buf):
    other = phoenix.Device(4)
    with phoenix.Device(4) as device:
        registration = device.register(buf)
    fails(errno.EFAULT, other.read, fd, buf, 512)  # still open through other
    registration.close()  # does nothing
    other.close()


# ---- registrations ----

def test_target_is_the_memory_itself_on_the_host(device, buf):
    with device.register(buf) as r:
        assert r.target == r.address == phoenix.address_of(buf) and r.nbytes == len(buf)


def test_register_part_of_an_object_and_by_address(device, buf):
    with device.register(buf, PAGE):
        with device.register(phoenix.address_of(buf) + 2 * PAGE, PAGE) as r:
            assert r.address == phoenix.address_of(buf) + 2 * PAGE


def test_register_errors(device, buf):
    address = phoenix.address_of(buf)
    fails(errno.EINVAL, device.register, buf[1:])
    fails(errno.EINVAL, device.register, buf, PAGE + 4096)
    fails(errno.EINVAL, device.register, address, 0)
    fails(errno.EINVAL, device.register, 0, PAGE)
    fails(errno.EINVAL, device.register, (1 << 64) - PAGE, 2 * PAGE)
    with device.register(buf, 2 * PAGE):
        fails(errno.EINVAL, device.register, address + PAGE, 2 * PAGE)
    with pytest.raises(TypeError):
        device.register(address)
    with pytest.raises(ValueError):
        device.register(buf, 5 * PAGE)


def test_memory_that_is_not_mapped_or_not_writable_is_efault(device):
    hole = mmap.mmap(-1, 4 * PAGE)
    inside = -(-phoenix.address_of(hole) // PAGE) * PAGE
    hole.close()
    fails(errno.EFAULT, device.register, inside, PAGE)
    read_only = mmap.mmap(-1, 4 * PAGE, prot=mmap.PROT_READ)
    with pytest.raises(BufferError):
        device.register(read_only)
    inside = -(-phoenix.address_of(read_only) // PAGE) * PAGE
    fails(errno.EFAULT, device.register, inside, PAGE)


def test_exact_duplicate_counts_references(device, fd, buf):
    first, second = device.register(buf), device.register(buf)
    assert first.target == second.target
    first.close()
    assert device.read(fd, buf, PAGE) == PAGE
    second.close()
    fails(errno.EFAULT, device.read, fd, buf, PAGE)


def test_second_deregistration_does_nothing(device, buf):
    r = device.register(buf)
    r.close()
    r.close()


def test_registered_buffer_is_kept_alive_and_in_place(device, fd):
    store = bytearray(2 * PAGE + PAGE)
    start = -phoenix.address_of(store) % PAGE
    r = device.register(memoryview(store)[start:start + PAGE])
    with pytest.raises(BufferError):
        store.extend(b"x")
    address = r.address
    del store
    gc.collect()
    assert phoenix.read(fd, address, PAGE, device=device) == PAGE
    assert seen(r) == DATA[:PAGE]
    r.close()


def test_closed_registration_lets_the_buffer_go(device):
    store = bytearray(2 * PAGE)
    start = -phoenix.address_of(store) % PAGE
    view = memoryview(store)[start:start + PAGE]
    r = device.register(view)
    r.close()
    view.release()
    store.extend(b"x")


def test_collected_registration_is_deregistered(device, fd, buf):
    device.register(buf)
    gc.collect()
    fails(errno.EFAULT, device.read, fd, buf, PAGE)
    device.register(buf, PAGE).close()  # would overlap if the first still lived


def test_register_after_close_is_enodev(buf):
    device = phoenix.Device(5)
    device.close()
    fails(errno.ENODEV, device.register, buf)


# ---- single reads and writes ----

def buffers():
    numpy_or_none = None
    try:
        import numpy as numpy_or_none
    except ImportError:
        pass
    yield pytest.param(lambda n: bytearray(n), id="bytearray")
    yield pytest.param(lambda n: memoryview(bytearray(n)), id="memoryview")
    yield pytest.param(lambda n: mmap.mmap(-1, n), id="mmap")
    yield pytest.param(lambda n: array.array("i", bytes(n)), id="array of int")
    yield pytest.param(lambda n: (ctypes.c_char * n)(), id="ctypes array")
    yield pytest.param(lambda n: phoenix.aligned(n), id="aligned")
    yield pytest.param(lambda n: numpy_zeros(numpy_or_none, n), id="numpy array")


def numpy_zeros(numpy_or_none, n):
    if not numpy_or_none:
        need.missing("numpy", "the Python package")
    return numpy_or_none.zeros((2, n // 8), dtype="f4")


@pytest.mark.parametrize("make", list(buffers()))
def test_read_and_write_any_buffer(make, fd):
    memory = make(8192)
    assert phoenix.read(fd, memory, offset=4096) == 8192
    assert bytes(memoryview(memory).cast("B")) == DATA[4096:4096 + 8192]
    assert phoenix.write(fd, memory, 4096, offset=0, buf_offset=4096) == 4096
    assert os.pread(fd, 4096, 0) == DATA[8192:8192 + 4096]


def test_read_by_address(fd):
    memory = bytearray(4096)
    assert phoenix.read(fd, phoenix.address_of(memory), 100, offset=1, buf_offset=5) == 100
    assert memory[5:105] == DATA[1:101] and not any(memory[105:])
    with pytest.raises(TypeError):
        phoenix.read(fd, phoenix.address_of(memory))


def test_fd_may_be_a_file_object(path):
    memory = bytearray(100)
    with open(path, "rb") as f:
        assert phoenix.read(f, memory) == 100 and f.tell() == 0
    assert memory == DATA[:100]


def test_write_takes_read_only_memory_and_read_does_not(fd):
    assert phoenix.write(fd, b"abc", offset=7) == 3
    assert os.pread(fd, 3, 7) == b"abc"
    with pytest.raises(BufferError):
        phoenix.read(fd, b"abc")


def test_registered_memory_by_interior_address_and_offset(device, fd, buf):
    with device.register(buf) as r:
        assert device.read(fd, buf, PAGE, offset=PAGE, buf_offset=PAGE) == PAGE
        assert seen(r)[PAGE:2 * PAGE] == DATA[PAGE:2 * PAGE]
        assert device.read(fd, buf[2 * PAGE:], 10, offset=3) == 10
        assert seen(r)[2 * PAGE:2 * PAGE + 10] == DATA[3:13]
        assert device.write(fd, buf, 10, offset=0, buf_offset=PAGE) == 10
        assert os.pread(fd, 10, 0) == DATA[PAGE:PAGE + 10]


def test_read_is_short_at_end_of_file(fd):
    memory = bytearray(PAGE)
    assert phoenix.read(fd, memory, offset=3 * PAGE) == 100
    assert phoenix.read(fd, memory, offset=4 * PAGE) == 0


def test_zero_bytes_need_no_file():
    assert phoenix.read(-1, bytearray(1), 0) == 0


def test_single_errors(device, fd, buf, tmp_path):
    memory = bytearray(4096)
    fails(errno.EBADF, phoenix.read, -1, memory)
    fails(errno.EINVAL, phoenix.read, fd, memory, offset=-1)
    fails(errno.EINVAL, phoenix.read, fd, memory, 4096, offset=(1 << 63) - 1)
    fails(errno.EINVAL, phoenix.read, fd, 4096, -1)
    fails(errno.EINVAL, phoenix.read, fd, 4096, 1, buf_offset=-1)
    fails(errno.EFAULT, phoenix.read, fd, 4096, 1)
    fails(errno.EFAULT, device.read, fd, buf)  # not registered
    fails(errno.ENODEV, phoenix.read, fd, buf, device=6)
    fails(errno.EINVAL, phoenix.read, fd, buf, device=8)
    with device.register(buf):
        end = phoenix.address_of(buf) + len(buf)
        fails(errno.EFAULT, device.read, fd, end - 512, 513)
        fails(errno.EINVAL, device.read, fd, end - 512, 1, buf_offset=-1)
    for outside in ((4097, 0), (1, 4096), (-1, 0), (1, -1)):
        with pytest.raises(ValueError):
            phoenix.read(fd, memory, outside[0], buf_offset=outside[1])
    r, w = os.pipe()
    fails(errno.ESPIPE, phoenix.read, r, memory)
    os.close(r)
    os.close(w)
    only_read = os.open(tmp_path, os.O_RDONLY)
    fails(errno.EISDIR, phoenix.read, only_read, memory)
    os.close(only_read)


def test_error_names_the_call(fd):
    error = fails(errno.EBADF, phoenix.read, -1, bytearray(7))
    assert "phxfs_read(-1, -1, 0x" in str(error) and ", 7, 0)" in str(error)


# ---- memory ----

def test_aligned_memory():
    for alignment in (4096, PAGE, 1 << 21):
        memory = phoenix.aligned(PAGE, alignment)
        assert phoenix.address_of(memory) % alignment == 0
        assert len(memory) == PAGE and not memory.readonly and not any(memory)
    for bad in ((0, PAGE), (-1, PAGE), (PAGE, 3), (PAGE, 0)):
        with pytest.raises(ValueError):
            phoenix.aligned(*bad)


def test_things_that_are_no_buffer_are_type_errors(fd):
    for bad in ("text", None, 1.5, [1]):
        with pytest.raises(TypeError):
            phoenix.read(fd, bad, 1)
    with pytest.raises(BufferError):
        phoenix.read(fd, memoryview(bytearray(8))[::2], 1)
    with pytest.raises(OverflowError):
        phoenix.read(fd, -1, 1)


def test_failed_calls_leave_buffers_free(device, fd):
    store = bytearray(100)
    fails(errno.EBADF, phoenix.read, -1, store)
    fails(errno.EINVAL, device.register, memoryview(store))
    phoenix.read_batch([phoenix.Request(-1, store)])
    with pytest.raises(ValueError):
        phoenix.read_batch([phoenix.Request(fd, store), phoenix.Request(fd, store, 101)])
    gc.collect()
    store.extend(b"x")
