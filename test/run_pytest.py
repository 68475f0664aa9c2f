#!/usr/bin/env python3
"""Runs pytest on its arguments: the one of this Python, else one installed
into build/venv from PyPI. With `--emulate PHX` first, the tests run on emulated
devices, and anything that phx finds wrong is a failure. Exit status: pytest's, or
phx's (docs/emulator.md)."""
import os
import subprocess
import sys
import venv

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PINNED = "pytest==9.0.2"


def python_with_pytest():
    probe = [sys.executable, "-c", "import pytest"]
    if subprocess.run(probe, stderr=subprocess.DEVNULL).returncode == 0:
        return sys.executable
    home = os.path.join(TOP, "build", "venv")
    python = os.path.join(home, "bin", "python")
    if not os.path.exists(os.path.join(home, "bin", "pytest")):
        venv.create(home, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", PINNED], check=True)
    return python


if __name__ == "__main__":
    env = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", PHX_TOP=TOP)
    arguments, emulator = sys.argv[1:], []
    if arguments[:1] == ["--emulate"]:
        emulator, arguments = [os.path.abspath(arguments[1]), "emulate", "--strict", "--"], arguments[2:]
        env.update(T_EMULATED="1", LD_PRELOAD=os.path.join(TOP, "build", "test-c", "fake_gpus.so"))
    run = [*emulator, python_with_pytest(), "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    sys.exit(subprocess.run(run, env=env, cwd=TOP).returncode)
