"""Writers of record files for tests, by the published formats, without their libraries."""

import json
import struct

_TABLE = []
for _number in range(256):
    for _ in range(8):
        _number = (_number >> 1) ^ (0x82F63B78 if _number & 1 else 0)
    _TABLE.append(_number)


def masked_crc(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ _TABLE[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def frame(payload):
    """One record of a TFRecord file."""
    length = struct.pack("<Q", len(payload))
    return (length + struct.pack("<I", masked_crc(length)) + payload
            + struct.pack("<I", masked_crc(payload)))


def _varint(number):
    number &= 2**64 - 1
    out = b""
    while number > 127:
        out, number = out + bytes([number & 127 | 128]), number >> 7
    return out + bytes([number])


def _field(number, data):
    return bytes([number << 3 | 2]) + _varint(len(data)) + data


def _feature(values):
    values = values if isinstance(values, list) else [values]
    if not values:
        return _field(3, b"")  # of int64
    if all(isinstance(each, bytes) for each in values):
        return _field(1, b"".join(_field(1, each) for each in values))
    if all(isinstance(each, int) for each in values):
        return _field(3, _field(1, b"".join(map(_varint, values))))
    return _field(2, _field(1, struct.pack(f"<{len(values)}f", *values)))


def example(**features):
    """A serialized tf.train.Example: bytes, int and float values, or lists of them."""
    return _field(1, b"".join(_field(1, _field(1, name.encode()) + _field(2, _feature(values)))
                              for name, values in features.items()))


def sequence_example(context, lists):
    """A serialized tf.train.SequenceExample: `lists` has a list of values for each step."""
    features = b"".join(_field(1, _field(1, name.encode()) + _field(2, _feature(values)))
                        for name, values in context.items())
    steps = b"".join(
        _field(1, _field(1, name.encode())
               + _field(2, b"".join(_field(1, _feature(step)) for step in values)))
        for name, values in lists.items())
    return _field(1, features) + _field(2, steps)


def litdata_item(*leaves):
    """An item of LitData: the sizes of its leaves, and the leaves."""
    return struct.pack(f"<{len(leaves)}I", *map(len, leaves)) + b"".join(leaves)


def litdata_folder(folder, spec, serializers, chunks, dims=None):
    """Writes chunks, which are lists of items, and their index.json."""
    entries = []
    for number, items in enumerate(chunks):
        ends = [4 * (len(items) + 2)]
        for item in items:
            ends.append(ends[-1] + len(item))
        name = f"chunk-0-{number}.bin"
        header = struct.pack(f"<{len(ends) + 1}I", len(items), *ends)
        (folder / name).write_bytes(header + b"".join(items))
        entries.append({"filename": name, "chunk_bytes": ends[-1], "chunk_size": len(items),
                        "dim": dims[number] if dims else None})
    config = {"compression": None, "data_format": serializers, "data_spec": json.dumps([1, spec]),
              "encryption": None, "item_loader": "TokensLoader" if dims else "PyTreeLoader"}
    (folder / "index.json").write_text(json.dumps({"chunks": entries, "config": config}))


def litdata_spec(value):
    """The data_spec of a value like `value`: dicts and tuples, and None for a leaf."""
    if value is None:
        return {"type": None, "context": None, "children_spec": []}
    keys = list(value) if isinstance(value, dict) else None
    return {"type": f"builtins.{type(value).__name__}", "context": json.dumps(keys),
            "children_spec": [litdata_spec(value[key]) for key in keys or range(len(value))]}
