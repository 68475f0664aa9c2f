"""A torch tensor filled through the library equals the file, and a file written
from a tensor equals the tensor. python3 torch_fill.py FOLDER"""
import os
import sys

import torch

import phoenix  # examples/python/phoenix.py; PHX_LIBRARY names the library

folder = sys.argv[1]
path, out = os.path.join(folder, "torch-in"), os.path.join(folder, "torch-out")
size = 256 << 20
data = os.urandom(size)
with open(path, "wb") as f:
    f.write(data)
tensor = torch.zeros(size, dtype=torch.uint8, device="cuda:0")
torch.cuda.synchronize()
address = tensor.data_ptr()
lib = phoenix._lib
target = phoenix.ctypes.c_void_p()
assert lib.phxfs_open(0) == 0, phoenix.ctypes.get_errno()
assert lib.phxfs_regmem(0, address, size, phoenix.ctypes.byref(target)) == 0, phoenix.ctypes.get_errno()
with open(path, "rb") as f:
    assert lib.phxfs_read(f.fileno(), 0, address, 0, size, 0) == size
want = torch.frombuffer(bytearray(data), dtype=torch.uint8)
assert torch.equal(tensor.cpu(), want), "the tensor differs from the file"
tensor.add_(1)
torch.cuda.synchronize()
with open(out, "w+b") as f:
    assert lib.phxfs_write(f.fileno(), 0, address, 0, size, 0) == size
    f.seek(0)
    assert torch.equal(torch.frombuffer(bytearray(f.read()), dtype=torch.uint8), want + 1), "the file differs from the tensor"
assert lib.phxfs_deregmem(0, address, size) == 0 and lib.phxfs_close(0) == 0
print("ok torch: tensor and file are equal, both ways")
