"""The cells of the table: what is measured, the floor that must hold and the aim.

A number is how much faster than the baseline the library is: the ratio of the
median latencies or, where metric is iops, of the throughputs."""
from dataclasses import dataclass


@dataclass(frozen=True)
class Cell:
    group: str
    name: str
    args: str  # of phx_bench
    floor: float
    aim: float
    metric: str = "p50"  # or iops
    engine: str = "io_uring"
    seconds: float = 0.12  # to measure in one round
    tail: bool = False  # its p99 must not be worse than the baseline's
    emulated: bool = False  # needs a phxfs device: under phx emulate
    extra: bool = False  # not in the table of floors, for the plots only
    need_mib: int = 0  # of memory and of disk


def _table():
    hot, disk = "sync batch, page cache", "sync batch, O_DIRECT"
    for n, floor, aim in ((1, 10, 20), (8, 4, 5), (32, 1.5, 2), (256, 1.1, 1.3), (1024, 1.1, 1.3)):
        yield Cell(hot, f"4K, n={n}", f"--size 4K --count {n}", floor, aim, tail=n in (1, 32))
    for n, floor, aim in ((1, 4, 6), (8, 1.4, 1.6), (32, 1.05, 1.3), (256, 1, 1.2), (1024, 1, 1.2)):
        yield Cell(hot, f"64K, n={n}", f"--size 64K --count {n}", floor, aim, tail=n in (1, 32), seconds=0.2 if n > 32 else 0.12)
    yield Cell(hot, "1M, n=256", "--size 1M --count 256 --span 512M", 1, 1.2, seconds=0.5)
    yield Cell(hot, "256M, n=8", "--size 256M --count 8 --pattern sequential --least 2", 1, 2, seconds=0.4, need_mib=6000)
    for n, floor, aim in ((1, 1.8, 2.2), (8, 1.4, 1.6), (32, 1.15, 1.3)):
        yield Cell(disk, f"4K, n={n}", f"--size 4K --count {n} --direct", floor, aim, tail=n in (1, 32), seconds=0.2)
    for n, floor, aim in ((32, 3, 9), (256, 2, 7)):
        yield Cell(disk, f"4K contiguous, n={n}", f"--size 4K --count {n} --pattern sequential --direct", floor, aim, seconds=0.2)
    yield Cell(disk, "256M, n=8", "--size 256M --count 8 --pattern sequential --direct --least 1", 1, 1, seconds=0.1, need_mib=6000)
    for n, floor, aim in ((1, 5, 12), (16, 2, 4), (64, 1.3, 1.7)):
        yield Cell("async, page cache", f"4K submit to wait, n={n}", f"--mode async --size 4K --count {n}", floor, aim)
    yield Cell("async, page cache", "4K submit alone, n=16", "--mode submit --size 4K --count 16", 1, 1)
    for t in (4, 16):
        yield Cell("concurrent callers, page cache", f"4K n=8, {t} threads (IO/s)", f"--mode threads --count 8 --threads {t}", 3, 10, metric="iops")
    for n, floor, aim in ((1, 4, 4), (8, 1.5, 1.5), (32, 1.1, 1.1), (256, 1, 1)):
        yield Cell("sync engine", f"4K page cache, n={n}", f"--size 4K --count {n}", floor, aim, engine="sync", tail=n in (1, 32))
    for n in (1, 8, 32, 256):
        yield Cell("sync engine", f"4K O_DIRECT, n={n}", f"--size 4K --count {n} --direct", 1, 1.3, engine="sync", seconds=0.2)
    for where, args, cpu, registered in (("page cache", "", 0.93, 0.75), ("O_DIRECT", " --direct", 0.98, 0.97)):
        yield Cell("one phxfs_read", f"4K {where}, CPU memory", "--mode single" + args, cpu, 1)
        yield Cell("one phxfs_read", f"4K {where}, registered", "--mode single --registered" + args, registered, 1)
    for live, floor, aim in ((1, 1 / 1.1, 1), (1000, 1, 1), (10000, 10, 10)):
        yield Cell("register and deregister", f"with {live} live", f"--mode regmem --live {live}", floor, aim, emulated=True)
    for size in ("16K", "256K"):  # the plot by size has 4K, 64K and 1M from above at n=32 and 256
        yield Cell(hot, f"{size}, n=32", f"--size {size} --count 32", 0, 0, extra=True)
    yield Cell(hot, "1M, n=32", "--size 1M --count 32", 0, 0, extra=True)


CELLS = list(_table())

# What loading costs: key of the driver's line, bound, what it is.
LOAD = (
    ("threads_loaded", 0, "threads that loading the library starts"),
    ("rss_loaded_kib", 1024, "KiB of memory that loading takes"),
    ("rss_used_kib", 8192, "KiB of memory after 100 batches"),
)

# The baseline is honest if it is at most this much slower than the ceiling.
HONEST = (Cell("honesty", "4K, n=1024", "--size 4K --count 1024", 0, 0, extra=True), 1.15)
CPU_FLOOR, CPU_AIM = 1.0, 0.7  # CPU per I/O against the baseline's, in every cell
