#!/usr/bin/env python3
"""Holds the two safetensors readers of the examples to malformed.py and to each
other.

    readers.py C_PROGRAM SANITIZED_C_PROGRAM

Both C programs and load_model.py must load every good file and refuse every bad
one with exit 1 and one clear line, never by a crash; on mutated files the
sanitized program and the Python reader must agree. Prints `ok NAME` and
`FAIL NAME: reason`; exit 1 if anything failed.
"""

import os
import random
import re
import subprocess
import sys
import tempfile

import malformed

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PYTHON = [sys.executable, "-B", os.path.join(TOP, "examples", "python", "load_model.py")]
MUTATED, SEED = 400, 3
TOKENS = [b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b"\\u00e9", b"\\ud83d\\ude00", b"\\ud800", b"0",
          b"1", b"512", b"1024", b"-1", b"1.5", b"1e2", b"18446744073709551615", b"null", b"true", b" ", b"\0",
          b"\xc3\xa9", b"\xff", b'"a"', b'"dtype"', b'"shape"', b'"data_offsets"', b'"__metadata__"', b'"F32"',
          b'"F4"', b"[]", b"{}", b"\n"]


def run(program, path):
    done = subprocess.run(program + [path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=60)
    return done.returncode, done.stdout, done.stderr.decode("utf-8", "replace")


def loads(program, path):
    """Why program does not load the file as it should; empty: it does."""
    code, out, err = run(program, path)
    if code != 0 or err:
        return "exit %d: %s" % (code, err[-300:])
    return "" if b"verified" in out else "it does not say verified"


def refuses(program, path, pattern):
    """Why program does not refuse the file as it should; empty: it does."""
    code, out, err = run(program, path)
    line = err.rstrip("\n")
    if code != 1 or out:
        return "exit %d: %s" % (code, err[-300:])
    if "\n" in line or not line.isprintable():
        return "not one printable line: %r" % err[-300:]
    if path not in line or not re.search(pattern, line.replace(path, "")):
        return "the message does not tell: " + line
    return ""


def tables(programs, path):
    for kind, table in (("good", malformed.GOOD), ("bad", malformed.BAD)):
        for name, entry in table.items():
            content, pattern = entry if kind == "bad" else (entry, "")
            with open(path, "wb") as f:
                f.write(content)
            for title, program in programs.items():
                why = refuses(program, path, pattern) if kind == "bad" else loads(program, path)
                yield "%s: %s file: %s" % (title, kind, name), why


def mutate(source, content):
    """content with one to three changes in its header."""
    for _ in range(source.choice((1, 1, 1, 2, 3))):
        header = content[8:-len(malformed.DATA)]
        at = source.randrange(len(header))
        end = min(len(header), at + source.choice((0, 1, 1, 2, 5, 20)))
        middle = source.choice((source.choice(TOKENS), header[at:end] * 2, b"", bytes([source.randrange(256)])))
        content = malformed.file(header[:at] + middle + header[end:])
        if len(content) <= 8 + len(malformed.DATA):
            break
    return content


def agreement(program, path):
    """Both readers on mutated files: (why they do not agree, how many each way)."""
    sys.path.insert(0, os.path.dirname(PYTHON[-1]))
    import safetensors_header
    source, taken, refused = random.Random(SEED), 0, 0
    bases = [c for c in malformed.GOOD.values() if c.endswith(malformed.DATA)]
    for i in range(MUTATED):
        content = mutate(source, source.choice(bases))
        with open(path, "wb") as f:
            f.write(content)
        try:
            with open(path, "rb") as f:
                safetensors_header.read(f)
            good, why = True, ""
        except safetensors_header.Malformed as error:
            good, why = False, str(error)
        complaint = loads(program, path) if good else refuses(program, path, ".")
        if complaint:
            return "file %d: Python says '%s', C: %s: %r" % (i, why or "good", complaint, content[:400]), ""
        taken, refused = taken + good, refused + (not good)
    counts = "%d good, %d bad" % (taken, refused)
    return "" if min(taken, refused) > MUTATED // 20 else "one-sided: " + counts, counts


def main(arguments):
    plain, sanitized = arguments
    programs = {"load_model": [plain], "load_model, sanitized": [sanitized], "load_model.py": PYTHON}
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "case.safetensors")
        for name, why in tables(programs, path):
            failed += bool(why)
            print("FAIL %s: %s" % (name, why) if why else "ok " + name)
        why, counts = agreement([sanitized], path)
        failed += bool(why)
        name = "C and Python agree on %d mutated headers" % MUTATED
        print("FAIL %s: %s" % (name, why) if why else "ok %s (%s)" % (name, counts))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
