"""Tables through Arrow's C data interface, and lines of text."""

import ctypes
import json

import numpy as np
import pytest

import penstock as ps


class Schema(ctypes.Structure):
    pass


class Array(ctypes.Structure):
    pass


RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
Schema._fields_ = [("format", ctypes.c_char_p), ("name", ctypes.c_char_p),
                   ("metadata", ctypes.c_char_p), ("flags", ctypes.c_int64),
                   ("n_children", ctypes.c_int64),
                   ("children", ctypes.POINTER(ctypes.POINTER(Schema))),
                   ("dictionary", ctypes.c_void_p), ("release", RELEASE),
                   ("private_data", ctypes.c_void_p)]
Array._fields_ = [("length", ctypes.c_int64), ("null_count", ctypes.c_int64),
                  ("offset", ctypes.c_int64), ("n_buffers", ctypes.c_int64),
                  ("n_children", ctypes.c_int64), ("buffers", ctypes.POINTER(ctypes.c_void_p)),
                  ("children", ctypes.POINTER(ctypes.POINTER(Array))),
                  ("dictionary", ctypes.c_void_p), ("release", RELEASE),
                  ("private_data", ctypes.c_void_p)]
CAPSULE = ctypes.pythonapi.PyCapsule_New
CAPSULE.restype = ctypes.py_object
CAPSULE.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Table:
    """One column "x" of float64, with nulls where `valid` has no bit."""

    def __init__(self, values, valid=None):
        self.released = []
        self.keep = [np.asarray(values, np.float64),
                     None if valid is None else np.array([valid], np.uint8)]

    def __arrow_c_array__(self, requested_schema=None):
        mark = RELEASE(self.mark)
        child = Schema(b"g", b"x", None, 2, 0, None, None, mark, None)
        children = (ctypes.POINTER(Schema) * 1)(ctypes.pointer(child))
        schema = Schema(b"+s", b"", None, 0, 1, children, None, mark, None)
        data, valid = self.keep[:2]
        buffers = (ctypes.c_void_p * 2)(None if valid is None else valid.ctypes.data,
                                        data.ctypes.data)
        column = Array(len(data), -1, 0, 2, 0, buffers, None, None, mark, None)
        columns = (ctypes.POINTER(Array) * 1)(ctypes.pointer(column))
        nothing = (ctypes.c_void_p * 1)(None)
        array = Array(len(data), 0, 0, 1, 1, nothing, columns, None, mark, None)
        self.keep += [mark, child, children, schema, buffers, column, columns, nothing, array]
        return (CAPSULE(ctypes.addressof(schema), b"arrow_schema", None),
                CAPSULE(ctypes.addressof(array), b"arrow_array", None))

    def mark(self, address):
        self.released.append(address)


def test_rows_of_a_table_are_dicts_and_it_is_released():
    table = Table([0.5, 1.5, 2.5])
    rows = ps.from_arrow(table)
    assert rows.element_spec == {"x": ps.Field("float64")}
    assert [float(row["x"]) for row in rows] == [0.5, 1.5, 2.5]
    batch = next(iter(ps.Loader(rows.shuffle(seed=1).batch(3))))
    assert sorted(batch["x"].tolist()) == [0.5, 1.5, 2.5]
    before = len(table.released)
    del rows, batch
    assert len(table.released) > before  # the array; the schema was released before


def test_nulls_fail_or_become_a_value():
    with pytest.raises(ps.SampleError, match='column "x": the value is null.*nulls='):
        list(ps.from_arrow(Table([1, 2, 3], valid=0b101)))
    rows = ps.from_arrow(Table([1, 2, 3], valid=0b101), nulls={"x": -1})
    assert [float(row["x"]) for row in rows] == [1, -1, 3]
    loader = ps.Loader(ps.from_arrow(Table([1, 2, 3], valid=0b101)).batch(3), on_error="skip")
    assert [batch["x"].tolist() for batch in loader] == [[1, 3]]


def test_what_is_not_a_table_is_refused():
    with pytest.raises(ps.ConfigError, match="ndarray is not a table"):
        ps.from_arrow(np.arange(3))
    with pytest.raises(ps.ConfigError, match="nulls"):
        ps.from_arrow(Table([1]), nulls=["x"])
    with pytest.raises(ps.ConfigError, match="no value for column"):
        ps.from_arrow(Table([1]), nulls={"x": object()})
    with pytest.raises(ps.ConfigError, match="name a number"):
        ps.from_arrow(Table([1]), nulls={"x": "text"})


def test_lines_of_text(tmp_path):
    (tmp_path / "b.txt").write_text("drei\n")
    (tmp_path / "a.txt").write_text("eins\nzwölf\r\n")
    assert list(ps.from_text(tmp_path / "*.txt")) == ["eins", "zwölf", "drei"]
    assert list(ps.from_text([tmp_path / "b.txt", tmp_path / "a.txt"])) == ["drei", "eins", "zwölf"]
    assert ps.from_text(tmp_path / "*.txt").sample(2) == "drei"
    with pytest.raises(ps.ConfigError, match="no file matches"):
        ps.from_text(tmp_path / "*.csv")


def test_json_lines(tmp_path):
    rows = [{"text": "a b", "label": 1}, {"text": "", "label": 0}]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert list(ps.from_text(tmp_path / "rows.jsonl").map(json.loads)) == rows


def test_a_bad_line_is_named_with_its_file(tmp_path):
    (tmp_path / "bad.txt").write_bytes(b"good\n\xff\xfe\n")
    with pytest.raises(ps.SampleError, match="bad.txt.*line 2|line 2.*bad.txt"):
        list(ps.from_text(tmp_path / "bad.txt"))


class Letters:
    """A tokenizer: the numbers of the letters."""

    def encode(self, text):
        return [ord(letter) - ord("a") for letter in text if letter != " "]


def test_tokenize_texts_and_fields():
    texts = ps.from_tensor_slices(["ab", "", "c a"])
    ids = texts.tokenize(Letters())
    assert ids.element_spec == ps.Field("int64", (None,))
    assert [row.tolist() for row in ids] == [[0, 1], [], [2, 0]]
    named = ps.from_tensor_slices({"text": ["ab", "c"], "label": [1, 0]})
    rows = list(named.tokenize(Letters(), field="text", to="tokens"))
    assert [(row["tokens"].tolist(), int(row["label"])) for row in rows] == [([0, 1], 1), ([2], 0)]
    packed = next(iter(ps.Loader(ids.pack(4, separator=26).batch(2))))
    assert packed["tokens"].tolist() == [[0, 1, 26, 2], [0, 26, 0, 0]]


def test_a_function_is_a_tokenizer_too_also_in_processes():
    texts = ps.from_tensor_slices(["ab", "", "abc"])
    for workers in (0, 2):
        ids = texts.tokenize(lambda text: {"input_ids": [len(text)] * len(text)}, workers=workers)
        assert [row.tolist() for row in ids] == [[2, 2], [], [3, 3, 3]]


def test_a_tokenizer_that_returns_something_else_is_named():
    texts = ps.from_tensor_slices(["a", "b"])
    with pytest.raises(TypeError, match="not a list of whole numbers") as caught:
        list(texts.tokenize(lambda text: [0.5] if text == "b" else [1]))
    assert "sample 1 " in caught.value.__notes__[0]
    with pytest.raises(ps.ConfigError, match="not a tokenizer"):
        texts.tokenize(3)
    with pytest.raises(ps.ConfigError, match="no field 'text'"):
        ps.from_tensor_slices({"x": [1]}).tokenize(len, field="text")
    with pytest.raises(TypeError, match="name the field"):
        list(ps.from_tensor_slices({"x": ["a"]}).tokenize(len))
