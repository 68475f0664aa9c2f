"""The views that load_model.py makes of tensors: their types, shapes and values.
Runs with numpy and without; says which. An assertion that fails is the report."""

import os
import struct
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "examples", "python"))

import load_model as m  # noqa: E402
from safetensors_header import BITS, Tensor  # noqa: E402


def tensor(dtype, shape, content, at=0):
    return Tensor("t", dtype, shape, at, at + len(content)), memoryview(bytearray(b"x" * at + content))


VALUES = {  # dtype: struct's letter, two values
    "BOOL": ("?", True, False), "U8": ("B", 200, 1), "I8": ("b", -2, 1), "U16": ("H", 65535, 1), "I16": ("h", -2, 1),
    "U32": ("I", 1 << 31, 1), "I32": ("i", -2, 1), "U64": ("Q", 1 << 63, 1), "I64": ("q", -2, 1),
    "F32": ("f", 0.5, -1.0), "F64": ("d", 0.25, 3.0),
}

for dtype, (letter, x, y) in VALUES.items():
    for at in (0, 1):  # aligned and not
        t, data = tensor(dtype, (2, 1), struct.pack("<2" + letter, x, y), at)
        array = m.view(t, data)
        assert array.shape == (2, 1) and array[0, 0] == x and array[1, 0] == y, (dtype, at)
        assert array.itemsize * 8 == BITS[dtype]
        data[at:t.end] = bytes(len(data) - at)
        assert array[0, 0] == 0, dtype + ": not the same memory"

t, data = tensor("F32", (), struct.pack("<f", 2.5))
assert m.view(t, data)[()] == 2.5 and m.first_value(t, data) == "2.5"
t, data = tensor("F32", (0, 3), b"")
assert m.view(t, data).nbytes == 0 and m.first_value(t, data) == "empty"
t, data = tensor("BF16", (3,), struct.pack("<3H", 0x3fc0, 0xc000, 0x0000))  # 1.5, -2, 0
assert m.first_value(t, data) == "1.5" and m.view(t, data)[1] == 0xc000
if m.numpy:
    assert m.bf16_values(m.view(t, data)).tolist() == [1.5, -2.0, 0.0]
t, data = tensor("F16", (2,), struct.pack("<2e", 1.5, -2.0))
assert m.first_value(t, data) == "1.5" and m.view(t, data)[1] == (-2.0 if m.numpy else 0xc000)
t, data = tensor("C64", (1,), struct.pack("<2f", 1.0, -2.0))
assert not m.numpy or m.view(t, data)[0] == 1 - 2j
t, data = tensor("F8_E4M3", (4,), b"\x38\0\0\0")
assert bytes(m.view(t, data)) == b"\x38\0\0\0" and m.first_value(t, data) == "0x38..."
print("numpy" if m.numpy else "memoryview")
