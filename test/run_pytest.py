#!/usr/bin/env python3
"""Runs pytest on its arguments: the one of this Python, else one installed
into build/venv from PyPI. Exit status: pytest's."""
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
    run = [python_with_pytest(), "-m", "pytest", "-p", "no:cacheprovider", *sys.argv[1:]]
    sys.exit(subprocess.run(run, env=env, cwd=TOP).returncode)
