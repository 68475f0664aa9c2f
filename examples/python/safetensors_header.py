"""Reads the table of tensors of a safetensors file: safetensors.c in Python.

The format: 8 bytes, the length of the header (little-endian); the header, a JSON
object that gives each tensor's element type, shape and place; then the data,
which the tensors cover without gap and without overlap.

Needs only the standard library.
"""

import collections
import itertools
import json
import os
import stat

MOST_HEADER = 100000000  # bytes, the format's own limit
MOST_DIMS = 8
LIMIT = 1 << 64

BITS = {  # of one element
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8,
    "U16": 16, "I16": 16, "F16": 16, "BF16": 16, "U32": 32, "I32": 32, "F32": 32,
    "U64": 64, "I64": 64, "F64": 64, "C64": 64, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6,
}

# begin, end: bytes from the start of the data.
Tensor = collections.namedtuple("Tensor", "name dtype shape begin end")

# tensors in the order of the data; data_at: where the data begins in the file.
Header = collections.namedtuple("Header", "tensors data_at data_bytes")


class Malformed(ValueError):
    """Not a safetensors file, or a broken one; the text says what is wrong."""


def require(condition, text, *values):
    """Malformed unless condition; what could steer a terminal leaves the text."""
    if not condition:
        raise Malformed("".join(c if c.isprintable() else "?" for c in text % values))


class _Pairs(list):
    """A JSON object as it stands: repeated keys are still there."""


def _whole(text):
    require(not text.startswith("-") and len(text) <= 20 and int(text) < LIMIT,
            "expected a whole number of at most 64 bits, not %.40s", text)
    return int(text)


def _not_whole(text):
    raise Malformed("expected a whole number, not %.40s" % text)


def _unicode(text):
    """JSON escapes can spell what is no character: halves of surrogate pairs."""
    require(isinstance(text, str), "expected a string")
    require("\0" not in text and not any("\ud800" <= c <= "\udfff" for c in text),
            "bad \\u escape in a string")
    return text


def _object(value, what):
    require(isinstance(value, _Pairs), "%s: expected an object", what)
    result = {}
    for key, item in value:
        require(_unicode(key) not in result, "%s: '%s' appears twice", what, key)
        result[key] = item
    return result


def _is_shape(value):
    # A JSON array is a plain list, whose numbers _whole has made.
    return type(value) is list and all(type(n) is int for n in value)


def _tensor(name, value, data_bytes):
    what = "tensor '%.80s'" % name
    fields = _object(value, what)
    for key in ("dtype", "shape", "data_offsets"):
        require(key in fields, "%s: %s is missing", what, key)
    require(len(fields) == 3, "%s: unknown key", what)
    shape, offsets = fields["shape"], fields["data_offsets"]
    require(_is_shape(shape), "%s: shape is not an array of whole numbers", what)
    require(_is_shape(offsets) and len(offsets) == 2, "%s: data_offsets is not two whole numbers", what)
    require(len(shape) <= MOST_DIMS, "%s: more than %d dimensions", what, MOST_DIMS)
    bits = BITS.get(_unicode(fields["dtype"]))
    require(bits, "%s: unknown dtype '%.40s'", what, fields["dtype"])
    for n in shape:
        bits *= n
        require(bits < LIMIT, "%s: the shape is too large", what)
    begin, end = offsets
    require(bits % 8 == 0, "%s: does not fill whole bytes", what)
    require(begin <= end, "%s: ends before it begins", what)
    require(end - begin == bits // 8, "%s: dtype and shape ask for %d bytes, data_offsets give %d",
            what, bits // 8, end - begin)
    require(end <= data_bytes, "%s: ends at byte %d, but the file has %d bytes of data",
            what, end, data_bytes)
    return Tensor(name, fields["dtype"], tuple(shape), begin, end)


def parse(text, data_bytes):
    """The tensors, in the order of the data, that the header text (bytes)
    describes for data_bytes bytes of data."""
    require(text[:1] == b"{", "the header does not begin with '{': not a safetensors file")
    try:
        top = json.loads(text.decode("utf-8"), object_pairs_hook=_Pairs, parse_int=_whole,
                         parse_float=_not_whole, parse_constant=_not_whole)
    except Malformed:
        raise
    except (ValueError, RecursionError) as error:
        raise Malformed("header: %s" % error) from None
    top = _object(top, "header")
    metadata = top.pop("__metadata__", _Pairs())
    require(isinstance(metadata, _Pairs), "__metadata__: expected an object")
    for item in itertools.chain.from_iterable(metadata):
        _unicode(item)
    tensors = sorted((_tensor(name, value, data_bytes) for name, value in top.items()),
                     key=lambda t: (t.begin, t.end))
    at, before = 0, None
    for t in tensors:
        require(t.begin >= at, "tensors '%.80s' and '%.80s' overlap", before, t.name)
        require(t.begin == at, "no tensor covers bytes %d to %d of the data", at, t.begin)
        at, before = t.end, t.name
    require(at == data_bytes, "no tensor covers bytes %d to %d of the data", at, data_bytes)
    return tensors


def read(f):
    """The Header of f, a file opened in binary mode. Malformed: see its text."""
    info = os.fstat(f.fileno())
    require(stat.S_ISREG(info.st_mode), "not a regular file")
    raw = os.pread(f.fileno(), 8, 0)
    length = int.from_bytes(raw, "little")
    require(len(raw) == 8, "the file ends within the header")
    require(length <= MOST_HEADER, "header of %d bytes: not a safetensors file", length)
    text = os.pread(f.fileno(), length, 8)
    require(len(text) == length, "the file ends within the header")
    data_bytes = max(info.st_size - 8 - length, 0)
    return Header(parse(text, data_bytes), 8 + length, data_bytes)
