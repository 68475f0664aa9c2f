"""Reads 10,000 blocks of a file in a multiprocessing Pool of 8 forked workers,
after the parent has used the library itself, and verifies every byte.

Run:  PHXFS_VENDOR=HOST python3 examples/python/pool.py FILE [BLOCKS]

Exit: 0 all blocks are right, 1 anything else, 2 wrong arguments.
"""

import multiprocessing
import os
import random
import sys
import zlib

import phoenix

BLOCK = 4096
WORKERS = 8
BATCH = 50  # blocks of one task


def checksums(task):
    """In a worker: one batch, and the checksum of each block."""
    path, offsets = task
    buf = bytearray(BLOCK * len(offsets))
    with open(path, "rb") as f:
        results = phoenix.read_batch([
            phoenix.Request(f, buf, BLOCK, offset=offset, buf_offset=i * BLOCK)
            for i, offset in enumerate(offsets)])
    if results.failed:
        raise OSError("%d reads failed" % results.failed)
    return [zlib.crc32(buf[i * BLOCK:(i + 1) * BLOCK]) for i in range(len(offsets))]


def main(arguments):
    if len(arguments) not in (1, 2):
        print("usage: pool.py FILE [BLOCKS]", file=sys.stderr)
        return 2
    path, count = arguments[0], int(arguments[1]) if len(arguments) == 2 else 10000
    blocks = os.path.getsize(path) // BLOCK
    if blocks == 0:
        print("pool.py: %s is smaller than a block" % path, file=sys.stderr)
        return 1
    offsets = [random.randrange(blocks) * BLOCK for _ in range(count)]
    tasks = [(path, offsets[i:i + BATCH]) for i in range(0, count, BATCH)]
    checksums(tasks[0])  # the parent uses the library first
    with multiprocessing.get_context("fork").Pool(WORKERS) as pool:
        got = [crc for part in pool.imap(checksums, tasks) for crc in part]
    with open(path, "rb") as f:
        wrong = sum(zlib.crc32(os.pread(f.fileno(), BLOCK, offset)) != crc for offset, crc in zip(offsets, got))
    print("Python  %d blocks read by %d forked workers, %d wrong" % (len(got), WORKERS, wrong))
    return 1 if wrong or len(got) != count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
