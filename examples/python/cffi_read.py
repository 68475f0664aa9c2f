"""Reads a whole file with one batch into a registered buffer through cffi, which
calls C functions declared as in the header and needs no compiler (ABI mode), then
compares it with a plain read. phoenix.py does without cffi.

Build:  nothing; needs the package cffi (python3 -m pip install cffi)
Run:    PHXFS_VENDOR=HOST python3 examples/python/cffi_read.py FILE

Exit: 0 read and verified, 1 anything else, 2 wrong arguments, 77 cffi is missing.
"""

import mmap
import os
import sys

try:
    import cffi
except ImportError:
    print("skip cffi_read.py: the Python package cffi is missing")
    sys.exit(77)

DEVICE = 0
PIECE = 4 << 20  # bytes of one request

ffi = cffi.FFI()
ffi.cdef("""
    typedef int64_t off_t;
    typedef struct {
        int fd; int device_id; void *buf; off_t buf_offset;
        size_t nbytes; off_t f_offset; ssize_t result;
    } phxfs_io_req_t;
    int phxfs_open(int device_id);
    int phxfs_close(int device_id);
    uint64_t phxfs_get_page_size(void);
    int phxfs_regmem(int device_id, const void *addr, size_t len, void **target_addr);
    int phxfs_deregmem(int device, const void *addr, size_t len);
    int phxfs_read_batch(phxfs_io_req_t *reqs, int n);
    const char *phxfs_io_engine_name(void);
""")


def load():
    """libphoenix.so: PHX_LIBRARY (a path), else the build folder of this source
    tree, else wherever the system's loader finds it."""
    top = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    built = os.path.join(top, "build", "libphoenix.so")
    return ffi.dlopen(os.environ.get("PHX_LIBRARY") or
                      (built if os.path.exists(built) else "libphoenix.so"))


def check(value, what):
    """value, of a call that is negative when it fails; OSError then."""
    if value < 0:
        number = ffi.errno
        raise OSError(number, "%s: %s" % (what, os.strerror(number)))
    return value


def aligned(nbytes, alignment):
    """Fresh memory of nbytes whose address is a multiple of alignment, as a cffi
    buffer object. It is freed with the last reference to what is returned."""
    area = ffi.from_buffer(mmap.mmap(-1, nbytes + alignment))
    start = -int(ffi.cast("uintptr_t", area)) % alignment
    return area, area + start


def read(lib, f, size, start):
    """Reads the first size bytes of f to start, inside a registration."""
    offsets = range(0, size, PIECE)
    requests = ffi.new("phxfs_io_req_t[]", [
        (f.fileno(), DEVICE, start, at, min(PIECE, size - at), at, 0) for at in offsets])
    failed = check(lib.phxfs_read_batch(requests, len(offsets)), "phxfs_read_batch")
    for request in requests:
        if request.result != request.nbytes:
            print("cffi_read.py: offset %d: result %d, not %d"
                  % (request.f_offset, request.result, request.nbytes), file=sys.stderr)
    return failed == 0


def same_as_file(f, size, start):
    for at in range(0, size, PIECE):
        n = min(PIECE, size - at)
        if ffi.buffer(start + at, n)[:] != os.pread(f.fileno(), n, at):
            return False
    return True


def read_and_verify(f, size):
    lib = load()
    page = lib.phxfs_get_page_size()
    length = -(-size // page) * page
    area, start = aligned(length, page)  # area: start alone keeps nothing alive
    target = ffi.new("void **")
    check(lib.phxfs_open(DEVICE), "phxfs_open")
    try:
        check(lib.phxfs_regmem(DEVICE, start, length, target), "phxfs_regmem")
        try:
            good = read(lib, f, size, start) and same_as_file(f, size, ffi.cast("char *", target[0]))
        finally:
            check(lib.phxfs_deregmem(DEVICE, start, length), "phxfs_deregmem")
    finally:
        check(lib.phxfs_close(DEVICE), "phxfs_close")
    if good:
        print("cffi    engine %s: %d bytes in one batch, equal to a plain read"
              % (ffi.string(lib.phxfs_io_engine_name()).decode(), size))
    else:
        print("cffi_read.py: the file was not read as a plain read gives it", file=sys.stderr)
    return good


def main(arguments):
    if len(arguments) != 1:
        print("usage: cffi_read.py FILE", file=sys.stderr)
        return 2
    try:
        with open(arguments[0], "rb") as f:
            size = os.fstat(f.fileno()).st_size
            if size == 0:
                print("cffi_read.py: %s: not a file with content" % arguments[0], file=sys.stderr)
                return 1
            return 0 if read_and_verify(f, size) else 1
    except OSError as error:
        hint = "" if error.filename else " (without a phxfs device, set PHXFS_VENDOR=HOST)"
        print("cffi_read.py: %s%s" % (error, hint), file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
