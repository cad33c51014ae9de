"""Tables through Arrow's C data interface, and lines of text."""

import ctypes
import json
import sys

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


class Stream(ctypes.Structure):
    pass


GET = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
LAST_ERROR = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
Stream._fields_ = [("get_schema", GET), ("get_next", GET), ("get_last_error", LAST_ERROR),
                   ("release", RELEASE), ("private_data", ctypes.c_void_p)]
POINTER_OF = ctypes.pythonapi.PyCapsule_GetPointer
POINTER_OF.restype = ctypes.c_void_p
POINTER_OF.argtypes = [ctypes.py_object, ctypes.c_char_p]
KEPT = []  # what engine threads may still release


class Streamed:
    """The batch of a Table as a stream, whose functions run without the interpreter's lock."""

    def __init__(self, table):
        self.parts = table.__arrow_c_array__()
        self.left = [ctypes.sizeof(Array)]
        self.stream = Stream(GET(self.schema), GET(self.next), LAST_ERROR(lambda _: None),
                             RELEASE(lambda _: None), None)
        KEPT.append((self, table))

    def __arrow_c_stream__(self, requested_schema=None):
        return CAPSULE(ctypes.addressof(self.stream), b"arrow_array_stream", None)

    def schema(self, _, out):
        ctypes.memmove(out, POINTER_OF(self.parts[0], b"arrow_schema"), ctypes.sizeof(Schema))
        return 0

    def next(self, _, out):
        if self.left:
            ctypes.memmove(out, POINTER_OF(self.parts[1], b"arrow_array"), self.left.pop())
        else:
            ctypes.memset(out, 0, ctypes.sizeof(Array))
        return 0


def chunked(load, rows, **options):
    """A dataset of chunks of `rows` rows, in two files."""
    chunks = [(each, i % 2, i // 2, 0) for i, each in enumerate(rows)]
    schema, keep = Table([0.0]).__arrow_c_array__()
    KEPT.append(keep)
    return ps.Dataset(ps._native.from_arrow_chunks(
        schema, [b"a.table", b"b.table"], chunks, load, {},
        {"word": "from_chunks", "chunk_word": "part", "name": "", "identity": "",
         "chunk_bytes_max": 0, **options}))


def test_chunks_are_loaded_once_by_any_thread():
    loads = []

    def load(chunk):
        loads.append(chunk)
        return Streamed(Table([10 * chunk + i for i in range(10)]))

    rows = chunked(load, [10] * 8)
    assert len(rows) == 80 and rows.element_spec == {"x": ps.Field("float64")} and not loads
    with ps.Loader(rows.shuffle(seed=1).batch(5), threads=4) as loader:
        for _ in range(3):
            assert sorted(sum((batch["x"].tolist() for batch in loader), [])) == list(range(80))
    assert sorted(loads) == list(range(8))
    small = chunked(load, [10] * 8, chunk_bytes_max=1)
    assert [float(row["x"]) for row in small] == list(range(80))


def test_a_chunk_that_fails_is_named_with_its_file():
    def load(chunk):
        if chunk == 3:
            raise ValueError("it is cut")
        return Streamed(Table([0.5] * (4 if chunk == 1 else 2)))

    rows = chunked(load, [2] * 4)
    with pytest.raises(ps.SampleError, match=r"part 1: ValueError: it is cut.*b\.table"):
        rows.sample(7)
    with pytest.raises(ps.SampleError, match=r"part 0: it has 4 rows, not 2.*b\.table"):
        rows.sample(2)
    with ps.Loader(rows.shuffle(seed=1).batch(3), on_error="skip", threads=2) as loader:
        assert sum(len(batch) for batch in loader) == 4
        assert len(loader.ledger) == 4
    with pytest.raises(ps.SampleError, match="__arrow_c_stream__"):
        chunked(lambda chunk: chunk, [2]).sample(0)


def test_errors_of_a_chunk_that_may_pass_are_retried_and_interrupts_are_raised():
    raised = [OSError(5, "Input/output error"), TimeoutError("slow")]

    def load(chunk):
        if raised:
            raise raised.pop()
        return Streamed(Table([0.5]))

    assert float(chunked(load, [1]).sample(0)["x"]) == 0.5
    raised.append(SystemExit(3))
    with pytest.raises(SystemExit):
        list(ps.Loader(chunked(load, [1]).batch(1), on_error="skip"))


def test_without_pyarrow_files_are_refused(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for read in (ps.from_parquet, ps.from_arrow_files):
        with pytest.raises(ps.ConfigError, match="pyarrow cannot be imported.*pip install pyarrow"):
            read("x.parquet")


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
