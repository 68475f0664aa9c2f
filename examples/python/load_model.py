"""Loads every tensor of a safetensors file into one registered buffer, compares
each with a plain read, and shows the tensors as numpy arrays (memoryviews where
numpy is missing) that lie in the buffer: load_model.c in Python.

Run:  PHXFS_VENDOR=HOST python3 examples/python/load_model.py [--progress] FILE

The load is one batch. A batch tells nothing before its end, so when somebody
watches (stderr is a terminal, or --progress) the same requests go as a row of
asynchronous batches instead: see watched_read.py.

The buffer is ordinary memory, which the host connector takes as device memory.
For device memory pass its address to register() and as buf of the requests;
Registration.target is then where the CPU sees the data.

Exit: 0 loaded and verified, 1 anything else, 2 wrong arguments.
"""

import ctypes
import os
import struct
import sys
import time

import phoenix
import safetensors_header
import watched_read

try:
    import numpy
except ImportError:
    numpy = None

DEVICE = 0
PIECE = 4 << 20  # most bytes of one request
ROWS = 6         # of the printed table

NUMPY = {
    "BOOL": "?", "U8": "u1", "I8": "i1", "U16": "<u2", "I16": "<i2", "U32": "<u4", "I32": "<i4",
    "U64": "<u8", "I64": "<i8", "F16": "<f2", "F32": "<f4", "F64": "<f8", "C64": "<c8",
    "BF16": "<u2",  # numpy has no bfloat16: bf16_values
}
MEMORYVIEW = {
    "BOOL": "?", "U8": "B", "I8": "b", "U16": "H", "I16": "h", "U32": "I", "I32": "i",
    "U64": "Q", "I64": "q", "F32": "f", "F64": "d",
    "F16": "H", "BF16": "H",  # the bits
}


def view(t, data):
    """The tensor t as an array of its dtype and shape that shares data's memory.

    Without numpy a memoryview, of bytes where it knows no such type or shape; the
    eight-bit and smaller floats are bytes in any case.
    """
    if numpy and t.dtype in NUMPY:
        return numpy.ndarray(t.shape, NUMPY[t.dtype], data, t.begin)
    raw = data[t.begin:t.end]
    if not numpy and t.dtype in MEMORYVIEW and len(raw):
        return raw.cast(MEMORYVIEW[t.dtype], t.shape)
    return raw


def bf16_values(bits):
    """A numpy array of bfloat16 bits as float32 values, copied: bfloat16 is the
    upper half of a float32."""
    return (bits.astype("<u4") << 16).view("<f4")


def first_value(t, data):
    """The first element as text."""
    if t.begin == t.end:
        return "empty"
    array, first = view(t, data), (0,) * len(t.shape)
    if t.dtype not in (NUMPY if numpy else MEMORYVIEW):
        return "0x%02x..." % data[t.begin]
    if t.dtype == "BF16":
        value, = struct.unpack("<f", b"\0\0" + bytes(data[t.begin:t.begin + 2]))
    elif t.dtype == "F16":
        value, = struct.unpack("<e", data[t.begin:t.begin + 2])
    else:
        value = array[first]
    return "%.4g" % value if "F" in t.dtype else str(value)


def plan(header, f, buf, device):
    """One request per PIECE of each tensor; a tensor keeps its place in the data."""
    return [
        phoenix.Request(f, buf, min(PIECE, t.end - at), offset=header.data_at + at, buf_offset=at,
                        device=device)
        for t in header.tensors for at in range(t.begin, t.end, PIECE)
    ]


def load(header, f, buf, device, watched):
    """Reads all tensors into buf; True if every byte came."""
    requests = plan(header, f, buf, device)
    begin = time.perf_counter()
    results = (watched_read if watched else phoenix).read_batch(requests)
    took = time.perf_counter() - begin
    good = True
    for request, result in zip(requests, results):
        if result != request.nbytes:
            why = os.strerror(-result) if result < 0 else "the file ends before them"
            print("load_model.py: %d bytes at file offset %d: %s"
                  % (request.nbytes, request.offset, why), file=sys.stderr)
            good = False
    if good:
        print("Python  engine %s: %d tensors, %d bytes in %d requests%s, %.3f s, %.2f GB/s"
              % (phoenix.engine_name(), len(header.tensors), header.data_bytes, len(requests),
                 "" if watched else " of one batch", took, header.data_bytes / took / 1e9))
    return good


def same_as_file(t, f, data_at, data):
    for at in range(t.begin, t.end, PIECE):
        n = min(PIECE, t.end - at)
        if data[at:at + n] != os.pread(f.fileno(), n, data_at + at):
            return False
    return True


def verify(header, f, data):
    """Compares every tensor with a plain read; True if all are equal."""
    for t in header.tensors[:ROWS]:
        name = "".join(c if c.isprintable() else "?" for c in t.name)
        print("  %-48.48s %-5s %-14s %10d  %s" % (name, t.dtype, list(t.shape), t.end - t.begin,
                                                  first_value(t, data)))
    if len(header.tensors) > ROWS:
        print("  and %d more" % (len(header.tensors) - ROWS))
    differ = [t.name for t in header.tensors if not same_as_file(t, f, header.data_at, data)]
    if differ:
        print("load_model.py: %d tensors differ from a plain read: %r ..." % (len(differ), differ[0]),
              file=sys.stderr)
        return False
    print("Python  verified: each of %d tensors equal to a plain read" % len(header.tensors))
    return True


def main(arguments):
    watched = sys.stderr.isatty() or arguments[:1] == ["--progress"]
    if len(arguments) != 1 + (arguments[:1] == ["--progress"]):
        print("usage: load_model.py [--progress] FILE.safetensors", file=sys.stderr)
        return 2
    try:
        with open(arguments[-1], "rb") as f:
            header = safetensors_header.read(f)
            if not header.data_bytes:
                raise safetensors_header.Malformed("no data to load")
            page = phoenix.page_size()
            buf = phoenix.aligned(-(-header.data_bytes // page) * page, page)
            ctypes.memset(phoenix.address_of(buf), 0xa5, len(buf))  # what was never loaded shows
            with phoenix.Device(DEVICE) as device, device.register(buf):
                if not load(header, f, buf, device, watched) or not verify(header, f, buf):
                    return 1
                arrays = {t.name: view(t, buf) for t in header.tensors}  # nothing is copied
            print("Python  %d %s lie in the buffer" % (
                len(arrays), "numpy arrays" if numpy else "memoryviews (numpy is missing)"))
            return 0
    except safetensors_header.Malformed as error:
        print("load_model.py: %s: %s" % (arguments[-1], error), file=sys.stderr)
    except OSError as error:
        hint = "" if error.filename else " (without a phxfs device, set PHXFS_VENDOR=HOST)"
        print("load_model.py: %s%s" % (error, hint), file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
