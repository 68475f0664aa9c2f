"""Runs phx_bench, one process for each library and round, the libraries taking
turns: what disturbs the machine then disturbs all of them alike."""
import json
import os
import shlex
import shutil
import statistics
import subprocess
import tempfile


class Skipped(Exception):
    """The driver cannot measure this here; the text says why."""


def commit(folder):
    """What the library of that folder was built from."""
    path = os.path.join(folder, "commit")
    if not os.path.exists(path):
        return "unknown"
    with open(path) as f:
        return f.read().strip()


class Driver:
    def __init__(self, folder, data):
        self.program = os.path.join(folder, "phx_bench")
        self.emulator = os.path.join(folder, "phx")
        self.folder = tempfile.mkdtemp(prefix="phx-bench-", dir=data)
        self.file = os.path.join(self.folder, "file")

    def measure(self, lib, cell, seconds=None, environment=None):
        """The driver's line about one library as a dict."""
        env = {k: v for k, v in os.environ.items() if not k.startswith("PHXFS_")}
        env.update({"PHXFS_VENDOR": "HOST"}, **(environment or {}))
        command = [self.program, "--json", "--lib", lib, "--file", self.file, *shlex.split(cell.args)]
        if "--seconds" not in command:
            command += ["--seconds", str(seconds or cell.seconds)]
        if cell.engine != "io_uring":
            env["PHXFS_IO_ENGINE"] = cell.engine
        if cell.emulated:
            env["PHXFS_VENDOR"] = "NVIDIA"
            command = [self.emulator, "emulate", "--", *command]
        p = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)
        if p.returncode == 77:
            raise Skipped(p.stderr.strip().splitlines()[-1] if p.stderr.strip() else "exit status 77")
        if p.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: exit status {p.returncode}: {p.stderr.strip()[-2000:]}")
        return json.loads(p.stdout.strip().splitlines()[-1])

    def remove_files(self):
        shutil.rmtree(self.folder, ignore_errors=True)


def interleaved(driver, cell, libs, rounds, seconds=None):
    """{name: [line of each round]} for libs {name: path}; first and last turns rotate."""
    names = list(libs)
    lines = {name: [] for name in names}
    for r in range(rounds):
        turn = r % len(names)
        for name in names[turn:] + names[:turn]:
            lines[name].append(driver.measure(libs[name], cell, seconds))
    return lines


def ratios(lines, over, under, key):
    """Of each round, over's value divided by under's."""
    return [a[key] / b[key] if b[key] else float("nan") for a, b in zip(lines[over], lines[under])]


def middle(values):
    """(median, lower quartile, upper quartile)"""
    v = sorted(values)
    if len(v) < 2:
        return v[0], v[0], v[0]
    q = statistics.quantiles(v, n=4, method="inclusive")
    return statistics.median(v), q[0], q[2]
