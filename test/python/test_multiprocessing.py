"""multiprocessing: every start method, pools, and loaders that read while
their parent reads."""
import os
import subprocess
import sys

import pytest

from binding_kit import TOP
from fork_kit import run

MAIN = """
def work(i):
    return all(use() for _ in range(2))
def in_process(queue):
    queue.put(work(0))
if __name__ == "__main__":
    assert use()
    ctx = multiprocessing.get_context({method!r})
"""


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_process_and_pool(tmp_path, method):
    run(tmp_path, MAIN.format(method=method) + """
    queue = ctx.SimpleQueue()
    p = ctx.Process(target=in_process, args=(queue,))
    p.start()
    assert queue.get() is True
    p.join(20)
    assert p.exitcode == 0
    with ctx.Pool(3) as pool:
        assert pool.map(work, range(24), chunksize=1) == [True] * 24
        assert use()
        assert pool.map(work, range(6), chunksize=1) == [True] * 6
    assert use()
""")


def test_pool_that_replaces_its_workers(tmp_path):
    run(tmp_path, MAIN.format(method="fork") + """
    with ctx.Pool(4, maxtasksperchild=2) as pool:
        assert pool.map(work, range(40), chunksize=1) == [True] * 40
""")


def test_process_pool_executor_while_threads_read(tmp_path):
    run(tmp_path, MAIN.format(method="fork") + """
    import concurrent.futures
    stop, wrong = False, []
    def reader():
        while not stop:
            check() or wrong.append(1)
    threads = [threading.Thread(target=reader) for _ in range(2)]
    for t in threads: t.start()
    with concurrent.futures.ProcessPoolExecutor(3, mp_context=ctx) as pool:
        assert list(pool.map(work, range(20))) == [True] * 20
    stop = True
    for t in threads: t.join()
    assert not wrong
""")


def test_a_worker_that_is_killed_disturbs_nobody(tmp_path):
    run(tmp_path, MAIN.format(method="fork") + """
    def endless():
        while True: check(64)
    victims = [ctx.Process(target=endless) for _ in range(4)]
    for p in victims: p.start()
    with ctx.Pool(2) as pool:
        result = pool.map_async(work, range(8), chunksize=1)
        for p in victims:
            p.kill()
            p.join(20)
        assert result.get(60) == [True] * 8
    assert [p.exitcode for p in victims] == [-signal.SIGKILL] * 4 and use()
""")


def test_data_loader_workers_read_while_the_parent_reads(tmp_path):
    """As PyTorch's DataLoader: persistent workers take indices from a queue of
    their own and put batches into shared memory; the parent reads as well."""
    run(tmp_path, """
import mmap
WORKERS, SLOTS, BATCH, EPOCHS = 4, 4, 16, 2

def worker(indices, done, memory):
    "Fills slot after slot. On the host device the memory is the device's; from another one it is copied."
    with phoenix.Device(0) as device, device.register(memory) as registration:
        while True:
            task = indices.get()
            if task is None:
                return
            slot, which = task
            at = slot * BATCH * BLOCK
            failed = phoenix.read_batch([
                phoenix.Request(FD, memory, BLOCK, offset=b * BLOCK, buf_offset=at + i * BLOCK, device=device)
                for i, b in enumerate(which)]).failed
            end = at + len(which) * BLOCK
            memory[at:end] = seen(registration)[at:end]
            done.put((slot, which, failed))

if __name__ == "__main__":
    assert use()
    ctx = multiprocessing.get_context("fork")
    stop, wrong = False, []
    def reader():
        while not stop:
            check(asynchronous=True) or wrong.append("parent")
    thread = threading.Thread(target=reader)
    thread.start()
    loaders = []
    for _ in range(WORKERS):
        memory = mmap.mmap(-1, SLOTS * BATCH * BLOCK + phoenix.ALIGNMENT)  # shared; registered where it is aligned
        start = -phoenix.address_of(memory) % phoenix.ALIGNMENT
        view = memoryview(memory)[start:start + SLOTS * BATCH * BLOCK]
        indices, done = ctx.SimpleQueue(), ctx.SimpleQueue()
        p = ctx.Process(target=worker, args=(indices, done, view))
        p.start()
        loaders.append((p, indices, done, view))
    for epoch in range(EPOCHS):
        order = random.sample(range(BLOCKS), BLOCKS)
        batches = [order[i:i + BATCH] for i in range(0, BLOCKS, BATCH)]
        seen = []
        for first in range(0, len(batches), WORKERS):
            for n, (p, indices, done, view) in enumerate(loaders):
                if first + n < len(batches):
                    indices.put((first // WORKERS % SLOTS, batches[first + n]))
            for n, (p, indices, done, view) in enumerate(loaders):
                if first + n >= len(batches): continue
                slot, which, failed = done.get()
                at = slot * BATCH * BLOCK
                for i, b in enumerate(which):
                    if failed or view[at + i * BLOCK:at + (i + 1) * BLOCK] != block(b): wrong.append(b)
                seen += which
        assert sorted(seen) == list(range(BLOCKS))
    for p, indices, done, view in loaders:
        indices.put(None)
        p.join(20)
        assert p.exitcode == 0
    stop = True
    thread.join()
    assert not wrong, wrong
""")


def test_the_example_reads_10000_blocks_in_a_pool_of_8(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(os.urandom(16 << 20))
    env = dict(os.environ, PHXFS_VENDOR="HOST")
    p = subprocess.run([sys.executable, os.path.join(TOP, "examples", "python", "pool.py"), str(path)],
                       env=env, capture_output=True, text=True, timeout=120)
    assert p.returncode == 0 and "10000 blocks" in p.stdout and " 0 wrong" in p.stdout, p.stdout + p.stderr
