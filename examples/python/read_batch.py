"""Loads a whole file with one batch into a registered buffer, then compares
every byte with a plain read: demo_batch.c in Python.

Run:  PHXFS_VENDOR=HOST python3 examples/python/read_batch.py FILE

Exit: 0 loaded and verified, 1 anything else, 2 wrong arguments.
"""

import ctypes
import os
import sys
import time

import phoenix

DEVICE = 0
PIECE = 4 << 20  # bytes of one request


def load(f, buf, size, device):
    """Reads the first size bytes of f into buf, PIECE by PIECE; True if all came."""
    requests = [
        phoenix.Request(f, buf, min(PIECE, size - at), offset=at, buf_offset=at, device=device)
        for at in range(0, size, PIECE)
    ]
    begin = time.perf_counter()
    results = phoenix.read_batch(requests)
    took = time.perf_counter() - begin
    for request, result in zip(requests, results):
        if result != request.nbytes:
            why = ": " + os.strerror(-result) if result < 0 else ""
            print("read_batch.py: offset %d: %d of %d bytes%s"
                  % (request.offset, max(result, 0), request.nbytes, why), file=sys.stderr)
    if results.failed:
        return False
    print("Python  engine %s: %d bytes in one batch of %d requests, %.3f s, %.2f GB/s"
          % (phoenix.engine_name(), size, len(requests), took, size / took / 1e9))
    return True


def verify(f, buf, size):
    """True if buf holds what a plain read of f gives."""
    for at in range(0, size, PIECE):
        end = min(at + PIECE, size)
        if buf[at:end] != os.pread(f.fileno(), end - at, at):
            print("read_batch.py: a plain read differs in the piece at offset %d" % at,
                  file=sys.stderr)
            return False
    print("Python  verified: %d bytes equal to a plain read" % size)
    return True


def main(arguments):
    if len(arguments) != 1:
        print("usage: read_batch.py FILE", file=sys.stderr)
        return 2
    try:
        with open(arguments[0], "rb") as f:
            size = os.fstat(f.fileno()).st_size
            if size == 0:
                print("read_batch.py: %s is empty" % arguments[0], file=sys.stderr)
                return 1
            page = phoenix.page_size()
            buf = phoenix.aligned(-(-size // page) * page, page)
            ctypes.memset(phoenix.address_of(buf), 0xa5, len(buf))  # what was never loaded shows
            with phoenix.Device(DEVICE) as device, device.register(buf):
                return 0 if load(f, buf, size, device) and verify(f, buf, size) else 1
    except OSError as error:
        print("read_batch.py: %s (without a phxfs device, set PHXFS_VENDOR=HOST)" % error,
              file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
