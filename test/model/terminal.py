"""Runs a command with stderr on a terminal and stdout in a pipe, and prints what
the terminal got. Exit status: the command's.

    terminal.py COMMAND...
"""

import os
import pty
import subprocess
import sys

ours, theirs = pty.openpty()
child = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=theirs)
os.close(theirs)
while True:
    try:
        piece = os.read(ours, 4096)
    except OSError:  # EIO: nobody has the terminal open any more
        break
    if not piece:
        break
    sys.stdout.write(piece.decode("utf-8", "replace"))
sys.exit(child.wait())
