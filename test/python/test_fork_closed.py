"""Copies of libphoenix.so in which one assumption of the reset does not hold:
children get ENOSYS at once from all that needs the runtime, single reads and
writes of plain memory work, the parent does not notice, and the log says why.
(test/c/fork_image.c has the checks one by one, fork_closed.c the steps around
them.)"""
import errno
import os
import platform
import struct

import pytest

import need
import test_load

PF_W, PT_LOAD, PT_DYNAMIC, PT_TLS = 2, 1, 2, 7
DT_NULL, DT_RELA, DT_RELASZ, DT_FLAGS_1, DF_1_NODELETE = 0, 7, 8, 0x6FFFFFFB, 8
GLOB_DAT, TPREL = {"x86_64": (6, 18), "aarch64": (1025, 1030)}.get(platform.machine(), (0, 0))


class Elf:
    """Enough of ELF64, little-endian, to change one thing."""

    def __init__(self, path):
        with open(path, "rb") as f:
            self.raw = bytearray(f.read())
        offset, = struct.unpack_from("<Q", self.raw, 32)
        size, count = struct.unpack_from("<HH", self.raw, 54)
        self.headers = [offset + i * size for i in range(count)]

    def segments(self, kind):
        """(file offset of the header, flags, offset, vaddr, filesz, memsz) of each."""
        for at in self.headers:
            t, flags, offset, vaddr, _, filesz, memsz = struct.unpack_from("<IIQQQQQ", self.raw, at)
            if t == kind:
                yield at, flags, offset, vaddr, filesz, memsz

    def dynamic(self):
        _, _, offset, _, size, _ = next(self.segments(PT_DYNAMIC))
        for at in range(offset, offset + size, 16):
            yield (at, *struct.unpack_from("<QQ", self.raw, at))

    def deletable(self):
        for at, tag, value in self.dynamic():
            if tag == DT_FLAGS_1:
                struct.pack_into("<QQ", self.raw, at, tag, value & ~DF_1_NODELETE)

    def wide_tls(self):
        at, *_, memsz = next(self.segments(PT_TLS))
        struct.pack_into("<Q", self.raw, at + 40, memsz + 8)

    def second_tls_relocation(self):
        """_ITM_registerTMCloneTable is asked for by every library and used by none."""
        table = {tag: value for _, tag, value in self.dynamic()}
        for at in range(table[DT_RELA], table[DT_RELA] + table[DT_RELASZ], 24):  # in the first segment: offset = address
            where, info = struct.unpack_from("<QQ", self.raw, at)
            if info & 0xFFFFFFFF == GLOB_DAT and self.symbol(info >> 32) == b"_ITM_registerTMCloneTable":
                struct.pack_into("<QQ", self.raw, at, where, TPREL)
                return
        need.pointless("a library with a relocation that nobody needs")

    def symbol(self, index):
        table = {tag: value for _, tag, value in self.dynamic()}
        symtab, strtab = table[6], table[5]
        name, = struct.unpack_from("<I", self.raw, symtab + index * 24)
        return bytes(self.raw[strtab + name:self.raw.index(0, strtab + name)])

    def second_writable_segment(self):
        at, flags, *_ = [s for s in self.segments(PT_LOAD) if not s[1] & PF_W][-1]
        struct.pack_into("<I", self.raw, at + 4, flags | PF_W)

    def unknown_bss(self):
        """Eight bytes more, which the test writes to."""
        at, *_, memsz = [s for s in self.segments(PT_LOAD) if s[1] & PF_W][-1]
        struct.pack_into("<Q", self.raw, at + 40, memsz + 8)
        return [s for s in self.segments(PT_LOAD) if s[1] & PF_W][-1][3] + memsz


@pytest.mark.parametrize("change, reason", [
    ("deletable", "not marked NODELETE"),
    ("wide_tls", "the TLS segment has another size"),
    ("second_tls_relocation", "not exactly one TLS relocation"),
    ("second_writable_segment", "the writable memory is not one range"),
    ("unknown_bss", "something wrote to .bss"),
])
def test_broken_assumption_closes_children_only(tmp_path, monkeypatch, change, reason):
    elf = Elf(test_load.LIB)
    address = getattr(elf, change)() or 0
    lib, log = tmp_path / "libphoenix.so", tmp_path / "log"
    lib.write_bytes(elf.raw)
    monkeypatch.setattr(test_load, "LIB", str(lib))
    got = test_load.python(
        """
        lib = load()
        if {0}:
            base = min(int(l.split("-")[0], 16) for l in open("/proc/self/maps") if {1!r} in l)
            ctypes.c_char.from_address(base + {0}).value = b"x"
        os.environ.update(PHXFS_VENDOR="HOST", PHXFS_LOG="error", PHXFS_LOG_FILE={2!r})
        assert lib.phxfs_open(0) == 0 and read_batch(lib) == (0, True)
        r, w = os.pipe()
        if os.fork() == 0:
            memory = ctypes.create_string_buffer(4096)
            fd = os.open(sys.executable, os.O_RDONLY)
            answers = [lib.phxfs_open(1), lib.phxfs_find_dev(1), read_batch(lib)[0], lib.phxfs_io_engine_name(), ctypes.get_errno(),
                       lib.phxfs_read(fd, -1, ctypes.addressof(memory), 0, 4096, 0), memory.raw == os.pread(fd, 4096, 0)]
            os.write(w, json.dumps(answers).encode())
            os._exit(0)
        os.wait()
        say(child=json.loads(os.read(r, 4096)), parent=read_batch(lib), close=lib.phxfs_close(0))
        """.format(address, str(lib), str(log))
    )
    enosys = errno.ENOSYS
    assert got == {"child": [-enosys, -enosys, -enosys, None, enosys, 4096, True], "parent": [0, True], "close": 0}
    text = log.read_text()
    assert "call=phxfs_open errno=ENOSYS" in text and reason in text, text
