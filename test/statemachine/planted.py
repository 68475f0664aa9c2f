#!/usr/bin/env python3
"""Plants bugs in the library, one at a time, and asks whether the tests of this
folder find each. Prints `ok NAME: found by TESTS` or `FAIL NAME: ..`.

    planted.py [FILTER]
    planted.py --fit      only whether they can be planted

A bug is one or more (file, text, text instead); the first text must be there
exactly once. The sources stay as they are: the compiler gets altered copies
(go test -overlay)."""
import json
import os
import re
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CONTROL = "no bug"
LIMIT_S = 60  # for one bug; the tests take 4 s, and one that hangs is found, too

BUGS = {
    CONTROL: [],
    "a second last deregmem succeeds": [
        ("core/deregister.go", "	if r == nil || r.addr != addr || (r.state",
         "	if r != nil && r.addr == addr && r.state == regDraining {\n		return nil, nil\n	}\n	if r == nil || r.addr != addr || (r.state")],
    "the last deregmem leaves the gate open": [
        ("core/deregister.go", "	r.state = regDraining\n	r.gate().Close()\n", "	r.state = regDraining\n")],
    "overlapping ranges are accepted": [
        ("core/register.go", "d.ranges.overlapping(addr, n)", "d.ranges.overlapping(addr, 1)")],
    "duplicates are not counted": [("core/renew.go", "	r.refs += refs\n", "")],
    "UNMAP twice": [
        ("core/deregister.go", "	if err = r.dev.node.Unmap(", "	_ = r.dev.node.Unmap(r.addr, r.host, r.lenBytes)\n	if err = r.dev.node.Unmap(")],
    "munmap without UNMAP": [
        ("core/deregister.go", "err = r.dev.node.Unmap(r.addr, r.host, r.lenBytes)", "err = error(nil)")],
    "munmap before I/O is over": [
        ("core/deregister.go", "	r.gate().Drain()\n	if bad := l.unpin(r, call)", "	if bad := l.unpin(r, call)")],
    "the last close does not wait for I/O": [
        ("core/deregister.go", "	r.gate().Close()\n	r.gate().Drain()\n	failed", "	r.gate().Close()\n	failed")],
    "the last close does not wait for calls": [
        ("core/open.go", "for d.calls > 0 {", "for d.calls > 1<<30 {")],
    "a range whose munmap failed is usable": [
        ("core/register.go", "	case regLive:\n		r.host", "	case regLive, regStuck:\n		r.host")],
    "a duplicate during the drain is given the dying range": [
        ("core/register.go", "if r.state == regLive {", "if r.state == regLive || r.state == regDraining {"),
        ("core/renew.go", "r.lenBytes != n || r.state != regLive:", "r.lenBytes != n || r.state == regReserved:")],
    "transfers may end one byte behind the range": [
        ("core/extent.go", "n > room-uint64(bufOff)", "n > room-uint64(bufOff)+1")],
    "transfers may begin one byte behind the range": [
        ("core/registration.go", "uint64(addr-r.addr) < r.lenBytes", "uint64(addr-r.addr) <= r.lenBytes")],
    "the buffer offset is forgotten": [
        ("core/extent.go", "r.host + HostAddr(in) + HostAddr(bufOff)", "r.host + HostAddr(in)")],
    "a wrong length is called an unknown range": [
        ("core/deregister.go", "return nil, errWrongLength", "return nil, errUnknownRange")],
    "open while closing says not open": [
        ("core/open.go", "return errClosingOpen", "return errNotOpen")],
    "a failed UNMAP is not made again": [
        ("core/deregister.go", "		atomic.StoreUint32(&r.pin.State, PinMapped)\n	}\n	return \"\", err", "	}\n	return \"\", err")],
    "a handle can be waited for twice": [
        ("core/handles.go", "!b.live.CompareAndSwap(uint64(h), 0)", "b.live.Load() != uint64(h)")],
    "a refused submit leaves its gates entered": [("core/async.go", "		if !queued {\n", "		if !queued && l == nil {\n")],
    "wait counts only requests that made I/O": [
        ("core/async.go", "return b.unresolved + writeResults(b.reqs", "return writeResults(b.reqs")],
    "a closed device still finds ranges": [
        ("core/resolve.go", "	if bad := d.stateErrorLocked(); bad != nil {", "	if bad := d.stateErrorLocked(); bad != nil && bad != errClosing {")],
}


def plant(changes, folder):
    """Altered copies in folder; returns the overlay file."""
    replace = {}
    for file, old, new in changes:
        path = os.path.join(TOP, file)
        with open(replace.get(path, path)) as f:
            text = f.read()
        if text.count(old) != 1:
            raise ValueError(f"{file} has {text.count(old)} times: {old!r}")
        replace[path] = os.path.join(folder, file.replace("/", "_"))
        with open(replace[path], "w") as f:
            f.write(text.replace(old, new))
    overlay = os.path.join(folder, "overlay.json")
    with open(overlay, "w") as f:
        json.dump({"Replace": replace}, f)
    return overlay


def look(changes):
    """Returns (whether the bug was found, a sentence)."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            overlay = plant(changes, folder)
        except ValueError as error:
            return False, str(error)
        binary = os.path.join(folder, "test")
        build = ["go", "test", "-c", "-overlay", overlay, "-o", binary, "./test/statemachine"]
        p = subprocess.run(build, cwd=TOP, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if p.returncode:
            return False, "it does not compile: " + p.stdout
        p = subprocess.run([binary, f"-test.timeout={LIMIT_S}s"], cwd=folder,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    if p.returncode == 0:
        return False, "not found"
    names = re.findall(r"^--- FAIL: (\w+)", p.stdout, re.M)
    return True, "found by " + (", ".join(names) or p.stdout.split("\n", 1)[0])


def fit():
    """Whether each bug can still be planted; the code may have changed."""
    for changes in BUGS.values():
        with tempfile.TemporaryDirectory() as folder:
            plant(changes, folder)


def main():
    if sys.argv[1:] == ["--fit"]:
        return fit()
    lost = 0
    for name, changes in BUGS.items():
        if len(sys.argv) > 1 and sys.argv[1] not in name:
            continue
        found, said = look(changes)
        right = found == (name != CONTROL)
        lost += not right
        print("ok" if right else "FAIL", f"{name}: {said}", flush=True)
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
