"""libphoenix for Python: file I/O into registered memory, through ctypes.

One file on purpose, so that a program can carry a copy. Needs only the
standard library and CPython 3.8 or later. Errors are OSError
(or its subclass for the errno, such as FileNotFoundError) with .errno set.
The library's own contract, with every errno, is docs/abi.md and docs/errors.md.

    import os, phoenix
    os.environ["PHXFS_VENDOR"] = "HOST"      # any time before the first call
    buf = phoenix.aligned(4 << 20)
    with open("model.bin", "rb") as f, phoenix.Device(0) as dev:
        with dev.register(buf):
            count = dev.read(f, buf, offset=0)

Memory. Wherever a buffer is expected, pass either an object with the buffer
protocol (bytearray, memoryview, mmap, numpy array, ...; C-contiguous, and
writable unless it is only written to a file) or an int, the address of device
memory. An object is kept alive, and cannot be resized, for as long as the
library may touch it; memory behind a bare address is the caller's to keep.

Files. Wherever fd is expected, pass an int or an object with fileno(). The
file is borrowed: keep it open until the call, or the asynchronous batch, ends.

Threads. Everything here may be used from any thread; calls release the
interpreter lock while they wait. A signal handler of Python runs only after
the call returns (Ctrl-C during a long batch takes effect at its end).

Import loads the library but starts nothing: variables set through os.environ
before the first call take effect, and a child forked before it works.
"""

import ctypes
import errno as _errno
import mmap
import operator
import os
import threading
import weakref

__all__ = [
    "CPU", "ALIGNMENT", "Request", "Results", "Device", "Registration", "Pending", "aligned",
    "address_of", "page_size", "engine_name", "find_device", "read", "write",
    "read_batch", "write_batch", "submit_read", "submit_write",
]

CPU = -1  # device of a request whose buffer is plain memory
ALIGNMENT = 65536  # bytes; enough for a registration of any vendor


# ---- the library ----

class _IoReq(ctypes.Structure):
    """phxfs_io_req_t."""
    _fields_ = [
        ("fd", ctypes.c_int), ("device_id", ctypes.c_int), ("buf", ctypes.c_void_p),
        ("buf_offset", ctypes.c_int64), ("nbytes", ctypes.c_size_t),
        ("f_offset", ctypes.c_int64), ("result", ctypes.c_ssize_t),
    ]


def _load():
    """Loads libphoenix.so: PHX_LIBRARY (a path), else the build folder of this
    source tree, else wherever the system's loader finds it."""
    path = os.environ.get("PHX_LIBRARY")
    if not path:
        top = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        path = os.path.join(top, "build", "libphoenix.so")
        if not os.path.exists(path):
            path = "libphoenix.so"
    try:
        lib = ctypes.CDLL(path, use_errno=True)
    except OSError as error:
        raise OSError(_errno.ENOENT, "libphoenix.so cannot be loaded: run make build, install it, "
                      "or name it in PHX_LIBRARY (%s)" % error) from None
    i, p, n, off = ctypes.c_int, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int64
    for name, result, args in (
        ("open", i, [i]), ("close", i, [i]), ("get_page_size", ctypes.c_uint64, []),
        ("find_dev", i, [i]),
        ("regmem", i, [i, p, ctypes.c_size_t, ctypes.POINTER(p)]),
        ("deregmem", i, [i, p, ctypes.c_size_t]),
        ("read", n, [i, i, p, off, n, off]), ("write", n, [i, i, p, off, n, off]),
        ("read_batch", i, [p, i]), ("write_batch", i, [p, i]),
        ("batch_submit_read", p, [p, i]), ("batch_submit_write", p, [p, i]),
        ("batch_wait", i, [p]), ("batch_destroy", i, [p]),
        ("io_engine_name", ctypes.c_char_p, []),
    ):
        function = getattr(lib, "phxfs_" + name)
        function.restype, function.argtypes = result, args
    return lib


_lib = _load()


def _error(returned, what):
    """OSError for a failed call. returned: its value, < 0 or None."""
    number = ctypes.get_errno()
    if not number and returned is not None and returned < -1:
        number = -returned  # the C++ library does not set errno
    number = number or _errno.EIO
    return OSError(number, "%s: %s" % (what, os.strerror(number)))


def _call(function, *args):
    """Calls function and returns its value; a negative int or NULL raises."""
    ctypes.set_errno(0)
    value = function(*args)
    if value is None or value < 0:
        shown = ", ".join(hex(a) if a > 0xffff else str(a) for a in args if isinstance(a, int))
        raise _error(value, "%s(%s)" % (function.__name__, shown))
    return value


# ---- arguments ----

def _integer(value, bits, what):
    """value as an int that a signed C integer of so many bits can hold; ctypes
    itself would cut it off silently."""
    value = operator.index(value)
    if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        raise OverflowError("%s does not fit in %d bits: %d" % (what, bits, value))
    return value


def _fileno(fd):
    return _integer(fd if isinstance(fd, int) else fd.fileno(), 32, "fd")


def _device_id(device):
    return _integer(device.id if isinstance(device, Device) else device, 32, "device")


class _PyBuffer(ctypes.Structure):
    """Py_buffer of the stable CPython ABI."""
    _fields_ = [
        ("buf", ctypes.c_void_p), ("obj", ctypes.c_void_p), ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t), ("readonly", ctypes.c_int), ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p), ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p),
        ("suboffsets", ctypes.c_void_p), ("internal", ctypes.c_void_p),
    ]


_get_buffer = ctypes.pythonapi.PyObject_GetBuffer
_get_buffer.argtypes = [ctypes.py_object, ctypes.POINTER(_PyBuffer), ctypes.c_int]
_release_buffer = ctypes.pythonapi.PyBuffer_Release
_release_buffer.argtypes = [ctypes.POINTER(_PyBuffer)]
_SIMPLE, _WRITABLE = 0, 1  # PyBUF_ flags: one block of bytes, C-contiguous


class _Memory:
    """Where a buffer argument lies: address and, unless only an address was
    given, size in bytes. Holds the object's buffer until release() or the end
    of its own life, so the memory stays where it is."""

    def __init__(self, buf, writable):
        self._view = None
        if isinstance(buf, int):
            if not 0 <= buf < 1 << 64:
                raise OverflowError("address does not fit in 64 bits: %d" % buf)
            self.address, self.size = buf, None
            return
        view = _PyBuffer()
        _get_buffer(buf, ctypes.byref(view), _WRITABLE if writable else _SIMPLE)
        self._view = view
        self.address, self.size = view.buf or 0, view.len

    def extent(self, buf_offset, nbytes):
        """(buf_offset, nbytes) as C can take them; nbytes None: up to the end
        of the object. An extent outside an object is a ValueError; behind a
        bare address the library checks what it can."""
        buf_offset = _integer(buf_offset, 64, "buf_offset")
        if nbytes is None:
            if self.size is None:
                raise TypeError("nbytes is needed when the buffer is an address")
            nbytes = self.size - buf_offset
        nbytes = _integer(nbytes, 64, "nbytes")
        if self.size is not None and not 0 <= buf_offset <= buf_offset + nbytes <= self.size:
            raise ValueError("bytes %d to %d lie outside a buffer of %d"
                             % (buf_offset, buf_offset + nbytes, self.size))
        return buf_offset, nbytes

    def release(self, _release=_release_buffer, _byref=ctypes.byref):
        view, self._view = self._view, None
        if view is not None:
            _release(_byref(view))

    __del__ = release


def address_of(buf):
    """The address of the first byte of buf, an object with the buffer protocol.

    It stays valid only while buf lives and is not resized.
    """
    memory = _Memory(buf, False)
    memory.release()
    return memory.address


def aligned(nbytes, alignment=ALIGNMENT):
    """Fresh zeroed memory whose address is a multiple of alignment.

    nbytes     bytes, > 0; for a registration a multiple of page_size().
    alignment  bytes, a power of two.
    Returns a writable memoryview; the memory (private, anonymous) is freed when
    the last reference to it is gone.
    """
    if nbytes <= 0 or alignment <= 0 or alignment & (alignment - 1):
        raise ValueError("nbytes must be positive and alignment a power of two")
    area = mmap.mmap(-1, nbytes + alignment, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    start = -address_of(area) % alignment
    return memoryview(area)[start:start + nbytes]


# Memory of calls that something other than an error of the library cut short
# (KeyboardInterrupt just after the C call): the library may hold it, so it must
# never be freed.
_stranded = []


# ---- what the library tells ----

def page_size():
    """Alignment in bytes of a registration's address and length."""
    return _lib.phxfs_get_page_size()


def engine_name():
    """"io_uring" or "sync": the engine of batches, fixed for the process.

    OSError: the library's runtime cannot start (ENOMEM, EAGAIN, ENOSYS).
    """
    ctypes.set_errno(0)
    name = _lib.phxfs_io_engine_name()
    if name is None:
        raise _error(None, "phxfs_io_engine_name()")
    return name.decode("ascii")


def find_device(ordinal):
    """The phxfs index, 0..7, of the vendor's device ordinal.

    OSError: EINVAL negative ordinal; ENODEV no such device, no vendor library,
    or no phxfs device for it (loading the kernel module later helps).
    """
    return _call(_lib.phxfs_find_dev, _integer(ordinal, 32, "ordinal"))


# ---- single transfers ----

def _transfer(function, fd, buf, nbytes, offset, buf_offset, device, writable):
    memory = _Memory(buf, writable)
    try:
        buf_offset, nbytes = memory.extent(buf_offset, nbytes)
        return _call(function, _fileno(fd), _device_id(device), memory.address, buf_offset,
                     nbytes, _integer(offset, 64, "offset"))
    finally:
        memory.release()


def read(fd, buf, nbytes=None, offset=0, buf_offset=0, device=CPU):
    """Reads from a file into memory and returns the number of bytes.

    fd          file, open for reading, seekable; its position does not move.
    buf         where to: writable buffer, or address.
    nbytes      bytes; None: the rest of buf.
    offset      bytes from the start of the file.
    buf_offset  bytes from the start of buf.
    device      Device or index whose registration holds buf; CPU: plain memory.
    The count is less than nbytes at end of file, or when an error came after
    some bytes had moved. OSError: EFAULT buf not inside a registration, ENODEV
    device not open, EINVAL bad number or O_DIRECT alignment, else the kernel's.
    Blocks until the data has moved; not ordered against other calls.
    """
    return _transfer(_lib.phxfs_read, fd, buf, nbytes, offset, buf_offset, device, True)


def write(fd, buf, nbytes=None, offset=0, buf_offset=0, device=CPU):
    """Writes memory to a file and returns the number of bytes; see read.

    buf may be read-only (bytes).
    """
    return _transfer(_lib.phxfs_write, fd, buf, nbytes, offset, buf_offset, device, False)


# ---- devices and registrations ----

class Device:
    """An open phxfs device; a context manager that closes it.

    device_id  phxfs index, 0..7.
    OSError: EINVAL index, ENOENT no node (module not loaded), EACCES, EBUSY
    another thread's last close is not finished.
    Opens are counted per process: every Device object counts one. Threads that
    each make and close a Device get EBUSY when one closes the last of them just
    then: try again, or keep one Device open for as long as there are threads.
    """

    def __init__(self, device_id=0):
        self.id = _integer(device_id, 32, "device_id")
        self._lock = threading.Lock()  # guards _registrations and the closing
        self._registrations = weakref.WeakSet()  # live ones made by register()
        _call(_lib.phxfs_open, self.id)
        self._close = weakref.finalize(self, _lib.phxfs_close, self.id)

    def register(self, buf, nbytes=None):
        """Registers memory for I/O and returns a Registration.

        buf     writable buffer, or device address; aligned to page_size().
        nbytes  bytes, a multiple of page_size(); None: all of buf.
        OSError: EINVAL alignment, length, or overlap with another registration;
        EFAULT memory not usable; ENODEV device closed; ENOMEM.
        The same memory may be registered again: references are counted.
        """
        made = Registration(self, buf, nbytes)
        with self._lock:
            self._registrations.add(made)
        return made

    def read(self, fd, buf, nbytes=None, offset=0, buf_offset=0):
        """read() into memory of this device's registrations."""
        return read(fd, buf, nbytes, offset, buf_offset, self)

    def write(self, fd, buf, nbytes=None, offset=0, buf_offset=0):
        """write() from memory of this device's registrations."""
        return write(fd, buf, nbytes, offset, buf_offset, self)

    def close(self):
        """Gives back the registrations made through this object, then the device.

        Waits for I/O in flight there. A second call does nothing.
        OSError: a registration could not be released; the device is closed all
        the same.
        """
        with self._lock:
            if not self._close.detach():
                return
            failure = None
            for registration in list(self._registrations):
                try:
                    registration.close()
                except OSError as error:
                    failure = error
            _call(_lib.phxfs_close, self.id)
            if failure:
                raise failure

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()


def _give_back(device_id, memory):
    """End of a Registration that nobody closed."""
    _lib.phxfs_deregmem(device_id, memory.address, memory.size)
    memory.release()


class Registration:
    """Memory registered with a device (Device.register); a context manager.

    address  int, address of the registered memory.
    nbytes   int, its length.
    target   int, host address of the first byte: the same memory as the CPU
             sees it, valid until close().
    The memory stays alive until close() or the end of this object, whichever
    is first; an object that nobody closes deregisters when it is collected.
    """

    def __init__(self, device, buf, nbytes=None):
        memory = _Memory(buf, True)
        _, nbytes = memory.extent(0, nbytes)
        memory.size = nbytes
        target = ctypes.c_void_p()
        try:
            _call(_lib.phxfs_regmem, device.id, memory.address, nbytes, ctypes.byref(target))
            self._end = weakref.finalize(self, _give_back, device.id, memory)
        except OSError:
            memory.release()
            raise
        except BaseException:
            _stranded.append(memory)
            raise
        self.device = device  # a reference: the device outlives its registrations
        self.address, self.nbytes, self.target = memory.address, nbytes, target.value
        self._lock = threading.Lock()  # guards the closing
        self._memory = memory

    def close(self):
        """Deregisters: waits for I/O in flight inside, then lets the memory go.

        A second call does nothing. OSError: ENODEV the device was closed
        meanwhile; the kernel's errno when the release failed (call again).
        """
        with self._lock:
            if not self._end.alive:
                return
            try:
                _call(_lib.phxfs_deregmem, self.device.id, self.address, self.nbytes)
            except OSError as error:
                if error.errno not in (_errno.ENODEV, _errno.ENOENT):
                    raise  # still registered
                self._finish()
                raise
            self._finish()

    def _finish(self):
        self._end.detach()
        self._memory.release()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()


# ---- batches ----

class Request:
    """One transfer of a batch; parameters as in read(). Reusable."""

    __slots__ = ("fd", "buf", "nbytes", "offset", "buf_offset", "device")

    def __init__(self, fd, buf, nbytes=None, offset=0, buf_offset=0, device=CPU):
        self.fd, self.buf, self.nbytes = fd, buf, nbytes
        self.offset, self.buf_offset, self.device = offset, buf_offset, device


class Results(list):
    """One int for each request, in order: bytes moved, or -errno.

    failed  how many differ from the bytes asked for (short reads included).
    """

    failed = 0


class _Array:
    """A C request array and the memory its requests point to. Borrowed by the
    library during a synchronous call, or from submit until wait or destroy."""

    def __init__(self, requests, writable):
        requests = list(requests)
        self.count = _integer(len(requests), 32, "number of requests")
        self.items = (_IoReq * self.count)()
        seen = {}  # a buffer shared by many requests is held once
        for item, r in zip(self.items, requests):
            memory = seen.get(id(r.buf))
            if memory is None:
                memory = seen[id(r.buf)] = _Memory(r.buf, writable)
            buf_offset, nbytes = memory.extent(r.buf_offset, r.nbytes)
            if nbytes < 0:  # unsigned in C
                raise ValueError("nbytes is negative: %d" % nbytes)
            item.buf, item.buf_offset, item.nbytes = memory.address, buf_offset, nbytes
            item.fd = _fileno(r.fd)
            item.device_id, item.f_offset = _device_id(r.device), _integer(r.offset, 64, "offset")
        self.memory = list(seen.values())
        self.files = [r.fd for r in requests]  # file objects stay open while referenced

    def results(self, failed):
        results = Results(item.result for item in self.items)
        results.failed = failed
        return results

    def release(self):
        for memory in self.memory:
            memory.release()
        self.files = []


def _batch(function, requests, writable):
    array = _Array(requests, writable)
    try:
        return array.results(_call(function, array.items, array.count))
    finally:
        array.release()


def read_batch(requests):
    """Carries out all reads and returns their Results.

    requests  iterable of Request.
    OSError only if the batch as a whole could not run (ENOMEM); a request that
    fails shows in its result, -EFAULT for one that is wrong in itself.
    Blocks until all are finished. Starts after every asynchronous batch that
    was submitted before, from whatever thread.
    """
    return _batch(_lib.phxfs_read_batch, requests, True)


def write_batch(requests):
    """Carries out all writes and returns their Results; see read_batch."""
    return _batch(_lib.phxfs_write_batch, requests, False)


def _forget(handle, array):
    """End of a Pending that nobody waited for."""
    _lib.phxfs_batch_destroy(handle)
    array.release()


class Pending:
    """A batch that runs by itself (submit_read, submit_write); a context
    manager that waits, or after an exception destroys.

    results  Results once wait() has returned, else None.
    An object that nobody waits for is destroyed when it is collected, which
    waits for its I/O.
    """

    def __init__(self, function, requests, writable):
        array = _Array(requests, writable)
        self.results = None
        self._array = array
        try:
            self._handle = _call(function, array.items, array.count)
            self._end = weakref.finalize(self, _forget, self._handle, array)
        except OSError:
            array.release()
            raise
        except BaseException:
            _stranded.append(array)
            raise

    def _finish(self):
        self._end.detach()
        self._array.release()

    def wait(self):
        """Waits for the I/O and returns the Results.

        OSError EINVAL: already waited for or destroyed, or another thread is
        waiting; the batch is not disturbed by that.
        """
        failed = _call(_lib.phxfs_batch_wait, self._handle)
        self.results = self._array.results(failed)
        self._finish()
        return self.results

    def destroy(self):
        """Waits for the I/O and drops the results. OSError EINVAL as wait()."""
        _call(_lib.phxfs_batch_destroy, self._handle)
        self._finish()

    def __enter__(self):
        return self

    def __exit__(self, kind, *exception):
        if self._end.alive:
            self.destroy() if kind else self.wait()


def submit_read(requests):
    """Starts all reads and returns a Pending at once.

    requests  iterable of Request; their buffers and files must not be used
              otherwise until the Pending has been waited for.
    OSError: EBUSY 16 asynchronous batches have I/O queued or running; ENOMEM;
    ENOTSUP no helper thread could be started.
    Ordered: starts after all batches submitted or called before, and nothing
    called later starts before it is complete.
    """
    return Pending(_lib.phxfs_batch_submit_read, requests, True)


def submit_write(requests):
    """Starts all writes and returns a Pending at once; see submit_read."""
    return Pending(_lib.phxfs_batch_submit_write, requests, False)
