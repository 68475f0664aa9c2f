"""The tensors of all-MiniLM-L6-v2, and a safetensors file made of them whose
numbers come from a fixed seed: the same bytes on every machine."""

import json
import random
import struct

HIDDEN, INNER, LAYERS, WORDS, POSITIONS = 384, 1536, 6, 30522, 512
SEED = 20240607
PIECE = 1 << 20  # floats made at once


def _pair(name, out, into):
    """bias and weight of a linear layer; into None: of a normalisation."""
    yield name + ".bias", "F32", [out]
    yield name + ".weight", "F32", [out] if into is None else [out, into]


def tensors():
    """(name, dtype, shape) in the order of the real file."""
    yield "embeddings.position_ids", "I64", [1, POSITIONS]
    yield from _pair("embeddings.LayerNorm", HIDDEN, None)
    for name, rows in (("position", POSITIONS), ("token_type", 2), ("word", WORDS)):
        yield "embeddings.%s_embeddings.weight" % name, "F32", [rows, HIDDEN]
    for layer in range(LAYERS):
        for name, out, into in (
            ("attention.output.LayerNorm", HIDDEN, None), ("attention.output.dense", HIDDEN, HIDDEN),
            ("attention.self.key", HIDDEN, HIDDEN), ("attention.self.query", HIDDEN, HIDDEN),
            ("attention.self.value", HIDDEN, HIDDEN), ("intermediate.dense", INNER, HIDDEN),
            ("output.LayerNorm", HIDDEN, None), ("output.dense", HIDDEN, INNER),
        ):
            yield from _pair("encoder.layer.%d.%s" % (layer, name), out, into)
    yield from _pair("pooler.dense", HIDDEN, HIDDEN)


def header():
    """The header, padded with spaces to a multiple of 8 as the format likes it."""
    table, at = {"__metadata__": {"format": "pt"}}, 0
    for name, dtype, shape in tensors():
        size = 8 if dtype == "I64" else 4
        for n in shape:
            size *= n
        table[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(table, separators=(",", ":")).encode("ascii")
    return text + b" " * (-len(text) % 8)


def _floats(source, n):
    """n float32 of either sign and a size from 1/64 to 1/32, as bytes."""
    keep = int.from_bytes(struct.pack("<I", 0x807fffff) * n, "little")
    exponent = int.from_bytes(struct.pack("<I", 0x3c800000) * n, "little")
    return (source.getrandbits(32 * n) & keep | exponent).to_bytes(4 * n, "little")


def generate(path):
    """Writes the file."""
    source, text = random.Random(SEED), header()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for _, dtype, shape in tensors():
            if dtype == "I64":
                f.write(struct.pack("<%dq" % POSITIONS, *range(POSITIONS)))
                continue
            left = shape[0] * (shape[1] if len(shape) > 1 else 1)
            while left:
                n = min(left, PIECE)
                f.write(_floats(source, n))
                left -= n
