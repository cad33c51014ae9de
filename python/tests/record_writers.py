"""Writers of record files for tests, by the published formats, without their libraries."""

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
