"""The Arrow files of ps.write_records, read by the libraries that define the format."""

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")

import pyarrow.feather  # noqa: E402

import penstock as ps  # noqa: E402

DTYPES = ("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64",
          "float16", "float32", "float64")


def plain(value):
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    return value.tolist() if hasattr(value, "tolist") else value


def table_of(written):
    """The rows of all files; each batch is checked in full."""
    tables = []
    for file in written.files:
        with pa.memory_map(file) as source:
            reader = pa.ipc.open_file(source)
            for i in range(reader.num_record_batches):
                reader.get_batch(i).validate(full=True)
            tables.append(reader.read_all())
            tables[-1].validate(full=True)
    return pa.concat_tables(tables)


def awkward(i):
    """Rows with empty texts, empty lists and names in Unicode."""
    return {
        "größe 木": i,
        "text": "日本 🎈" * (i % 3),
        "raw": bytes(range(256)) * (i % 2),
        "tokens": np.arange(i % 5, dtype=np.int32),
        "boxes": np.full((i % 3, 4), i / 8, np.float32),
        "image": np.full((2, 3, 3), i % 256, np.uint8),
        "flags": np.array([i % 2 == 0, i % 3 == 0, True]),
        "meta": {"a/b": i / 2, "ok": i % 7 == 0},
        "pair": (np.int16(-i), f"{i}"),
    }


SPEC = {
    "größe 木": ps.Field("int64"), "text": ps.Field("str"), "raw": ps.Field("bytes"),
    "tokens": ps.Field("int32", (None,)), "boxes": ps.Field("float32", (None, 4)),
    "image": ps.Field("uint8", (2, 3, 3)), "flags": ps.Field("bool", (3,)),
    "meta": {"a/b": ps.Field("float64"), "ok": ps.Field("bool")},
    "pair": (ps.Field("int16"), ps.Field("str")),
}


def rows_of_awkward(count, declared):
    if declared:
        return ps.range(count).map(lambda i: awkward(int(i)), spec=SPEC)
    return ps.from_index(count, awkward)


def expected(i):
    row = plain(awkward(i))
    return {**row, "pair": {"0": -i, "1": f"{i}"}}


@pytest.mark.parametrize("declared", [False, True])
@pytest.mark.parametrize("count", [0, 1, 7, 1024, 1025, 2500])
def test_pyarrow_reads_what_was_written(tmp_path, count, declared):
    data = rows_of_awkward(count, declared)
    written = ps.write_records(data, tmp_path / "out", "arrow", shards=min(3, max(count, 1)))
    table = table_of(written)
    assert (table.num_rows, written.samples) == (count, count)
    if count > 0:
        assert table.schema.field("image").type == pa.list_(
            pa.list_(pa.list_(pa.uint8(), 3), 3), 2)
    rows = table.to_pylist()
    for i in (*range(0, count, 97), *range(count - 3, count)):
        if 0 <= i:
            assert rows[i] == expected(i)


def test_we_read_what_was_written(tmp_path):
    written = ps.write_records(rows_of_awkward(1500, True), tmp_path / "out", "arrow", shards=4)
    data = ps.from_arrow_files(tmp_path / "out/*.arrow")
    assert len(data) == written.samples == 1500
    assert data.element_spec["image"].shape == (2, 3, 3)
    assert data.element_spec["boxes"].shape == (None, 4)
    for i, row in enumerate(data):
        assert plain(row) == expected(i)
    ids = [i for batch in ps.Loader(data.shuffle(seed=1).batch(64))
           for i in batch["größe 木"].tolist()]
    assert sorted(ids) == list(range(1500)) and ids != sorted(ids)


@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 1, 2)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_and_shape_comes_back(tmp_path, dtype, shape):
    random = np.random.default_rng(1)
    values = random.integers(0, 256, (50, *shape, np.dtype(dtype).itemsize), np.uint8)
    values = values.view(dtype)[..., 0] if dtype != "bool" else values[..., 0] % 2 == 0
    written = ps.write_records(ps.from_tensor_slices({"x": values}), tmp_path / "out", "arrow")
    column = table_of(written)["x"]
    assert column.null_count == 0 and len(column) == 50
    data = ps.from_arrow_files(written.files)
    assert data.element_spec["x"].dtype == dtype and data.element_spec["x"].shape == shape
    read = np.concatenate([batch["x"] for batch in ps.Loader(data.batch(7))])
    assert read.dtype == values.dtype and read.tobytes() == values.tobytes()


def test_a_sample_that_is_one_tensor_is_the_column_value(tmp_path):
    written = ps.write_records(ps.range(10), tmp_path / "out", "arrow")
    assert table_of(written).to_pydict() == {"value": list(range(10))}


def test_streams_are_written_as_they_come(tmp_path):
    stream = ps.from_generator(lambda: iter([awkward(i) for i in range(3000)]))
    written = ps.write_records(stream, tmp_path / "out", "arrow", shard_bytes=100_000)
    assert len(written.files) > 2
    rows = table_of(written).to_pylist()
    assert len(rows) == 3000 and rows[-1] == expected(2999)


def test_two_sizes_may_vary(tmp_path):
    images = ps.from_index(20, lambda i: {"x": np.full((i % 3, 1 + i % 4, 3), i, np.uint8)})
    rows = table_of(ps.write_records(images, tmp_path / "out", "arrow")).to_pylist()
    assert [row["x"] for row in rows] == [images.sample(i)["x"].tolist() for i in range(20)]


def test_an_inner_size_may_vary(tmp_path):
    channels = ps.from_index(20, lambda i: {"x": np.full((2, i % 3), i, np.float32)})
    table = table_of(ps.write_records(channels, tmp_path / "out", "arrow"))
    assert table.schema.field("x").type == pa.list_(pa.large_list(pa.float32()), 2)
    assert table["x"].to_pylist() == [[[float(i)] * (i % 3)] * 2 for i in range(20)]


def test_a_dataset_without_samples_has_its_columns(tmp_path):
    data = ps.from_tensor_slices({"x": np.zeros((0, 3), np.float32)})
    written = ps.write_records(data, tmp_path / "out", "arrow")
    assert table_of(written).schema.field("x").type == pa.list_(pa.float32(), 3)
    assert len(ps.from_arrow_files(written.files)) == 0


def test_huge_and_small_rows_are_in_batches_of_their_own(tmp_path):
    sizes = [10, 50_000_000, 0, 3, 9_000_000]
    data = ps.from_index(5, lambda i: {"raw": bytes([i]) * sizes[i]})
    written = ps.write_records(data, tmp_path / "out", "arrow", shards=1)
    with pa.memory_map(written.files[0]) as source:
        reader = pa.ipc.open_file(source)
        batches = [reader.get_batch(i) for i in range(reader.num_record_batches)]
    assert [batch.num_rows for batch in batches] == [2, 3]
    raw = table_of(written)["raw"].to_pylist()
    assert raw == [bytes([i]) * sizes[i] for i in range(5)]


def test_a_million_rows(tmp_path):
    values = np.arange(1_000_000) * 3
    data = ps.from_tensor_slices({"x": values, "ok": values % 2 == 0})
    written = ps.write_records(data, tmp_path / "out", "arrow", shards=5)
    table = table_of(written)
    assert np.array_equal(table["x"].to_numpy(), values)
    assert np.array_equal(table["ok"].to_numpy(), values % 2 == 0)
    read = ps.from_arrow_files(written.files)
    found = np.concatenate([batch["x"] for batch in ps.Loader(read.shuffle(seed=3).batch(8192))])
    assert np.array_equal(np.sort(found), values) and not np.array_equal(found, values)


def test_buffers_are_aligned_in_mapped_files(tmp_path):
    written = ps.write_records(rows_of_awkward(100, True), tmp_path / "out", "arrow", shards=1)
    with pa.memory_map(written.files[0]) as source:
        batch = pa.ipc.open_file(source).get_batch(0)
    for column in batch.columns:
        assert all(buffer.address % 64 == 0 for buffer in column.buffers() if buffer is not None)


def test_polars_reads_what_was_written(tmp_path):
    polars = pytest.importorskip("polars")
    written = ps.write_records(rows_of_awkward(1500, True), tmp_path / "out", "arrow", shards=2)
    lazily = polars.scan_ipc(str(tmp_path / "out/*.arrow")).collect()
    eagerly = polars.concat([polars.read_ipc(file) for file in written.files])
    for frame in (lazily, eagerly):
        assert frame.to_dicts() == [expected(i) for i in range(1500)]


def test_hugging_face_reads_what_was_written(tmp_path):
    datasets = pytest.importorskip("datasets")
    ps.write_records(rows_of_awkward(300, True), tmp_path / "out", "arrow", shards=2)
    read = datasets.load_dataset("arrow", data_files=str(tmp_path / "out/*.arrow"),
                                 cache_dir=str(tmp_path / "cache"), split="train")
    assert len(read) == 300
    for i in (0, 1, 150, 299):
        assert read[i] == expected(i)


def test_pandas_and_feather_read_what_was_written(tmp_path):
    pytest.importorskip("pandas")
    data = ps.from_index(50, lambda i: {"id": i, "text": f"t{i}"})
    written = ps.write_records(data, tmp_path / "out", "arrow", shards=1)
    frame = pyarrow.feather.read_feather(written.files[0])
    assert frame["text"].tolist() == [f"t{i}" for i in range(50)]
    assert frame["id"].tolist() == list(range(50))


def test_bfloat16_becomes_float32(tmp_path):
    data = ps.from_tensor_slices({"x": np.float32([1.5, -2, 3e38])}).map(ps.cast("bfloat16", "x"))
    values = table_of(ps.write_records(data, tmp_path / "out", "arrow"))["x"]
    assert values.type == pa.float32() and values.to_pylist()[:2] == [1.5, -2.0]
