"""Reads as phoenix.read_batch does, and draws a progress line with rate and
remaining time on stderr: watched_read.c in Python.

The requests go as a row of asynchronous batches, as many ahead as the library
queues. It carries them out in that order, one at a time with all its threads, so
each one that is complete moves the line. Every batch ends with a moment in which
only its last requests run; one batch for everything saves that.
"""

import collections
import errno
import sys
import time

import phoenix

STEP = 32 << 20  # bytes of one batch
WINDOW = 16      # the most asynchronous batches the library queues


class _Progress:
    """A line with rate and remaining time on stderr, at most ten times a second."""

    def __init__(self, total):
        self.total, self.done, self.drawn, self.begin = total, 0, 0.0, time.perf_counter()

    def add(self, nbytes):
        self.done += nbytes
        now = time.perf_counter()
        if now - self.drawn < 0.1 and self.done < self.total:
            return
        self.drawn, rate = now, self.done / (now - self.begin + 1e-9)
        minutes, seconds = divmod(int((self.total - self.done) / rate + 0.5), 60)
        sys.stderr.write("\r%3d %%  %.1f of %.1f MB  %.2f GB/s  ETA %d:%02d   " % (
            100 * self.done // self.total, self.done / 1e6, self.total / 1e6, rate / 1e9,
            minutes, seconds))
        sys.stderr.flush()


def _steps(requests):
    """Cuts the requests into runs of STEP bytes or a little more."""
    step, size = [], 0
    for request in requests:
        step.append(request)
        size += request.nbytes
        if size >= STEP:
            yield step
            step, size = [], 0
    if step:
        yield step


def read_batch(requests):
    """As phoenix.read_batch, but returns a plain list of results."""
    progress = _Progress(sum(r.nbytes for r in requests))
    flight, results = collections.deque(), []

    def wait_oldest():
        step, batch = flight.popleft()
        results.extend(batch.wait())
        progress.add(sum(r.nbytes for r in step))

    for step in _steps(requests):
        while True:
            if len(flight) == WINDOW:
                wait_oldest()
            try:
                flight.append((step, phoenix.submit_read(step)))
                break
            except OSError as error:
                if error.errno != errno.EBUSY or not flight:
                    raise
                wait_oldest()
    while flight:
        wait_oldest()
    sys.stderr.write("\n")
    return results
