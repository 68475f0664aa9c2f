"""Safetensors files for tests of the readers, small ones: GOOD must load, BAD must
be refused with a message that matches a pattern. Each is a dict from a name to
file bytes, or to (file bytes, pattern)."""

import json
import struct

DATA = bytes(range(256)) * 4  # 1024 bytes


def tensor(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def file(header, data=DATA, length=None):
    """A file of that header: a dict, text or bytes; length: what it claims."""
    if isinstance(header, dict):
        header = json.dumps(header)
    if isinstance(header, str):
        header = header.encode("utf-8")
    return struct.pack("<Q", len(header) if length is None else length) + header + data


WHOLE = tensor("U8", [1024], 0, 1024)
HALVES = {"a": tensor("F32", [2, 64], 0, 512), "b": tensor("BF16", [256], 512, 1024)}
A = '{"a":{"dtype":"U8","shape":[1024],"data_offsets":[0,1024]}}'

GOOD = {
    "two tensors": file(HALVES),
    "one byte": file({"a": tensor("U8", [1], 0, 1)}, b"x"),
    "padded, with white space": file('{ "a" :\t{ "dtype" : "U8" ,\n "shape" : [ 1024 ] ,\r\n'
                                     '"data_offsets" : [ 0 , 1024 ] } } \t\r\n  '),
    "metadata": file({"__metadata__": {"format": "pt", "text": "\u00e9\n\U0001f600"}, "a": WHOLE}),
    "names of all kinds": file({"": tensor("U8", [512], 0, 512),
                                "\u00e9\u4e2d\U0001f600\"\\/\b\f\n\r\t\u001b[31m": tensor("U8", [512], 512, 1024)}),
    "raw UTF-8 names": file('{"\u00e9\u4e2d\U0001f600":' + json.dumps(WHOLE) + "}"),
    "a scalar": file({"s": tensor("F64", [], 0, 8), "r": tensor("U8", [1016], 8, 1024)}),
    "an empty tensor": file({"e": tensor("F32", [0, 3], 512, 512), "a": tensor("F32", [128], 0, 512),
                             "b": tensor("F16", [256], 512, 1024)}),
    "names against the order of the data": file({"b": tensor("I8", [24], 0, 24), "a": tensor("U8", [1000], 24, 1024)}),
    "unaligned": file({"a": tensor("U8", [1], 0, 1), "b": tensor("F32", [5], 1, 21), "c": tensor("U8", [1003], 21, 1024)}),
    "small floats": file({"a": tensor("F4", [1024], 0, 512), "b": tensor("F6_E2M3", [4], 512, 515),
                          "c": tensor("F8_E4M3", [509], 515, 1024)}),
    "every other type": file({
        n: tensor(n, [8], at, at + 8 * size) for n, at, size in (
            ("BOOL", 0, 1), ("I8", 8, 1), ("F8_E5M2", 16, 1), ("F8_E8M0", 24, 1), ("U16", 32, 2),
            ("I16", 48, 2), ("F16", 64, 2), ("U32", 80, 4), ("I32", 112, 4), ("U64", 144, 8),
            ("I64", 208, 8), ("C64", 272, 8))}, DATA[:336]),
    "eight dimensions": file({"a": tensor("U8", [1, 2, 4, 8, 1, 2, 2, 4], 0, 1024)}),
}

BAD = {
    "empty file": (b"", "ends within the header"),
    "seven bytes": (b"\x10\0\0\0\0\0\0", "ends within the header"),
    "length beyond the file": (file(A, b"", len(A) + 1), "ends within the header"),
    "length of 2^64-1": (file(A, length=(1 << 64) - 1), "header of 18446744073709551615 bytes"),
    "length just above the limit": (file(A, length=100000001), "header of 100000001 bytes"),
    "no header": (file(""), "does not begin with '{'"),
    "text": (b"These are words, not tensors.\n" * 9, "header of [0-9]* bytes"),
    "a JSON array": (file("[]"), "does not begin with '{'"),
    "white space first": (file(" " + A), "does not begin with '{'"),
    "byte order mark": (file("\ufeff" + A), "does not begin with '{'"),
    "no tensor": (file("{}"), "byte"),
    "no data": (file("{}", b""), "no data to load"),
    "header cut short": (file(A[:30]), "header"),
    "two objects": (file(A + "{}"), "header"),
    "comma at the end": (file(A[:-1] + ",}"), "header"),
    "comma missing": (file('{"a":%s "b":1}' % json.dumps(WHOLE)), "header"),
    "colon missing": (file(A.replace(":", " ", 1)), "header"),
    "NUL in the header": (file(A.replace("U8", "U\0")), "header"),
    "newline in a string": (file(A.replace("U8", "U\n8")), "header"),
    "unknown escape": (file(A.replace("U8", "U\\x38")), "header"),
    "escape cut short": (file('{"a\\u00'), "header"),
    "string cut short after a backslash": (file('{"a\\'), "header"),
    "half a surrogate pair": (file(A.replace('"a"', '"\\ud800"')), "escape"),
    "surrogates the wrong way": (file(A.replace('"a"', '"\\udc00\\ud800"')), "escape"),
    "NUL by an escape": (file(A.replace('"a"', '"\\u0000"')), "NUL|escape"),
    "not UTF-8": (file(A.encode().replace(b'"a"', b'"\xff"')), "header"),
    "UTF-8 longer than needed": (file(A.encode().replace(b'"a"', b'"\xc0\xaf"')), "header"),
    "a surrogate in UTF-8": (file(A.encode().replace(b'"a"', b'"\xed\xa0\x80"')), "header"),
    "UTF-8 cut short": (file(A.encode().replace(b'"a"', b'"\xe4\xb8"')), "header"),
    "deep nesting": (file('{"a":' + "[" * 200000), "header"),
    "tensor is a number": (file('{"a":1}'), "expected"),
    "tensor is null": (file('{"a":null}'), "expected"),
    "metadata is a number": (file('{"__metadata__":1,"a":%s}' % json.dumps(WHOLE)), "expected"),
    "metadata of a number": (file('{"__metadata__":{"n":1},"a":%s}' % json.dumps(WHOLE)), "expected"),
    "dtype missing": (file('{"a":{"shape":[1024],"data_offsets":[0,1024]}}'), "dtype is missing"),
    "shape missing": (file('{"a":{"dtype":"U8","data_offsets":[0,1024]}}'), "shape is missing"),
    "offsets missing": (file('{"a":{"dtype":"U8","shape":[1024]}}'), "data_offsets is missing"),
    "unknown key": (file({"a": dict(WHOLE, device="cpu")}), "unknown key"),
    "repeated key": (file(A.replace('"shape"', '"dtype":"U8","shape"')), "repeated key|twice"),
    "repeated tensor": (file('{"a":%s,"a":%s}' % ((json.dumps(WHOLE),) * 2)), "'a' appears twice"),
    "repeated metadata": (file('{"__metadata__":{},"__metadata__":{},"a":%s}' % json.dumps(WHOLE)), "twice"),
    "unknown dtype": (file({"a": tensor("F128", [64], 0, 1024)}), "unknown dtype 'F128'"),
    "dtype of the wrong case": (file({"a": tensor("u8", [1024], 0, 1024)}), "unknown dtype"),
    "dtype is a number": (file(A.replace('"U8"', "8")), "expected"),
    "shape is a number": (file(A.replace("[1024]", "1024")), "expected|array"),
    "negative dimension": (file(A.replace("[1024]", "[-1024]")), "whole number"),
    "minus zero": (file(A.replace("[0,", "[-0,")), "whole number"),
    "fraction": (file(A.replace("[1024]", "[1024.0]")), "whole number"),
    "exponent": (file(A.replace("[1024]", "[1e3]")), "whole number"),
    "leading zero": (file(A.replace("[1024]", "[01024]")), "header"),
    "true as a dimension": (file(A.replace("[1024]", "[true,1024]")), "whole number"),
    "NaN as a dimension": (file(A.replace("[1024]", "[NaN]")), "whole number"),
    "dimension of 2^64": (file(A.replace("[1024]", "[18446744073709551616]")), "64 bits"),
    "dimension of 5000 digits": (file(A.replace("[1024]", "[" + "9" * 5000 + "]")), "64 bits"),
    "product beyond 64 bits": (file({"a": tensor("U8", [1 << 32, 1 << 32], 0, 1024)}), "too large"),
    "product that wraps to the size": (file({"a": tensor("U8", [(1 << 61) + 128, 8], 0, 1024)}), "too large"),
    "bytes beyond 64 bits": (file({"a": tensor("F64", [1 << 61], 0, 1024)}), "too large"),
    "nine dimensions": (file({"a": tensor("U8", [1024] + [1] * 8, 0, 1024)}), "more than 8 dim"),
    "one offset": (file(A.replace("[0,1024]", "[0]")), "expected|two whole"),
    "three offsets": (file(A.replace("[0,1024]", "[0,1024,1024]")), "expected|two whole"),
    "ends before it begins": (file({"a": tensor("U8", [0], 8, 0)}), "ends before it begins"),
    "size too small": (file({"a": tensor("F32", [255], 0, 1024)}), "ask for 1020 bytes, data_offsets give 1024"),
    "size too large": (file({"a": tensor("F32", [257], 0, 1024)}), "ask for 1028 bytes, data_offsets give 1024"),
    "half a byte": (file({"a": tensor("F4", [2047], 0, 1024)}), "whole bytes"),
    "beyond the file": (file({"a": tensor("U8", [1025], 0, 1025)}), "ends at byte 1025"),
    "far beyond the file": (file({"a": tensor("U8", [1024], (1 << 64) - 1025, (1 << 64) - 1)}), "ends at byte"),
    "data cut short": (file({"a": WHOLE}, DATA[:1000]), "ends at byte 1024"),
    "overlap": (file({"a": tensor("U8", [600], 0, 600), "b": tensor("U8", [600], 424, 1024)}), "'a' and 'b' overlap"),
    "the same place twice": (file({"a": WHOLE, "b": WHOLE}), "overlap"),
    "empty inside another": (file({"a": WHOLE, "e": tensor("U8", [0], 8, 8)}), "overlap"),
    "gap at the start": (file({"a": tensor("U8", [1016], 8, 1024)}), "covers bytes 0 to 8"),
    "gap between": (file({"a": tensor("U8", [500], 0, 500), "b": tensor("U8", [500], 524, 1024)}), "bytes 500 to 524"),
    "data after the last": (file({"a": tensor("U8", [1000], 0, 1000)}), "covers bytes 1000 to 1024"),
    "escapes in a name": (file({"\u001b[31m\u009b": tensor("U7", [1], 0, 1)}), "tensor '.*unknown dtype"),
}
