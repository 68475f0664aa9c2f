"""tool [forget]: registers in two threads and in a child, through Python."""
import ctypes
import fcntl
import mmap
import multiprocessing
import os
import struct
import sys
import threading

UNIT, GPU, MAP, UNMAP = 64 << 10, 0x7F0000000000, 0x40388801, 0x40388802


def use(index, forget=False):
    fd = os.open(f"/dev/phxfs_dev{index}", os.O_RDWR)
    memory = mmap.mmap(fd, UNIT)  # dups the descriptor and maps the first
    host = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    param = struct.pack("QQQQQQQ", 0, host, UNIT, GPU + index * UNIT, UNIT, 0, 0)
    fcntl.ioctl(fd, MAP, param)
    with open(sys.executable, "rb", buffering=0) as f:
        assert os.preadv(f.fileno(), [memoryview(memory)[:4]], 0) == 4
    assert memory[:4] == b"\177ELF"
    if not forget:
        fcntl.ioctl(fd, UNMAP, param)
    os.close(fd)


if __name__ == "__main__":
    forget = sys.argv[1:] == ["forget"]
    with open("/sys/class/phxfs-generic/phxfs_dev0/pci_bdf") as f:
        assert f.read() == "0000:00:04.0\n"
    assert os.path.exists("/dev/phxfs_dev7") and "phxfs_dev3" in os.listdir("/sys/class/phxfs-generic")
    threads = [threading.Thread(target=use, args=(i,)) for i in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    child = multiprocessing.get_context("spawn").Process(target=use, args=(2, forget))
    child.start()
    child.join()
    assert child.exitcode == 0
    print("fine")
