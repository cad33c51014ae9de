"""ps.from_parquet and ps.from_arrow_files with files of the libraries that write them."""

import os
import shutil

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")

import pyarrow.feather  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402

import penstock as ps  # noqa: E402


def plain(value):
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    return value.tolist() if hasattr(value, "tolist") else value


def rows_of(dataset):
    return [plain(row) for row in dataset]


def table_of(first, rows):
    numbers = np.arange(first, first + rows)
    return pa.table({
        "id": numbers,
        "x": (numbers * 0.5).astype(np.float32),
        "flag": numbers % 3 == 0,
        "text": [f"text {i}" * (i % 4) for i in numbers],
        "tokens": pa.array([list(range(i % 5)) for i in numbers], pa.list_(pa.int32())),
        "pair": pa.array([[i, -i] for i in numbers], pa.list_(pa.int64(), 2)),
        "color": pa.array(["red" if i % 2 else "blue" for i in numbers]).dictionary_encode(),
        "at": pa.array([{"row": i, "name": str(i)} for i in numbers]),
    })


def write_ipc(table, path, stream=False, compression=None, rows=None):
    new = pa.ipc.new_stream if stream else pa.ipc.new_file
    with new(path, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as out:
        out.write_table(table, max_chunksize=rows)


WRITERS = {
    "parquet": lambda table, path: pq.write_table(table, path, row_group_size=7),
    "arrow": lambda table, path: write_ipc(table, path, rows=7),
    "compressed": lambda table, path: write_ipc(table, path, compression="lz4", rows=7),
    "stream": lambda table, path: write_ipc(table, path, stream=True, rows=7),
    "stream_compressed": lambda table, path: write_ipc(table, path, stream=True,
                                                       compression="zstd", rows=7),
    "feather": lambda table, path: pyarrow.feather.write_feather(table, path, chunksize=7),
}


def reader_of(kind):
    return ps.from_parquet if kind == "parquet" else ps.from_arrow_files


@pytest.mark.parametrize("kind", WRITERS)
def test_every_kind_of_column_in_several_files(kind, tmp_path):
    tables = [table_of(0, 20), table_of(20, 1)[:0], table_of(20, 33)]
    for i, table in enumerate(tables):
        WRITERS[kind](table, tmp_path / f"{i}.data")
    expected = pa.concat_tables(tables).to_pylist()
    for limit in (None, 1):
        rows = reader_of(kind)(tmp_path / "*.data", chunk_bytes_max=limit)
        assert rows_of(rows) == expected
        assert rows_of(reader_of(kind)([tmp_path / "2.data", tmp_path / "0.data"],
                                       chunk_bytes_max=limit)) == expected[20:] + expected[:20]
        seen = []
        for rank in range(3):
            with ps.Loader(rows.shuffle(seed=1).batch(8), world=3, rank=rank, threads=4) as loader:
                seen += [batch["id"].tolist() for batch in loader]
        assert sorted(sum(seen, [])) == list(range(53))


@pytest.mark.parametrize("kind", WRITERS)
def test_chosen_columns_in_any_order_of_the_files(kind, tmp_path):
    table = table_of(0, 20)
    WRITERS[kind](table, tmp_path / "a.data")
    WRITERS[kind](table.select(["text", "tokens", "x", "id"]), tmp_path / "b.data")
    rows = reader_of(kind)(tmp_path / "?.data", columns=["x", "text"])
    assert rows_of(rows) == table.select(["x", "text"]).to_pylist() * 2
    with pytest.raises(ps.ConfigError, match="b.data has no column 'flag'"):
        reader_of(kind)(tmp_path / "?.data")
    with pytest.raises(ps.ConfigError, match="a.data has the column 'flag'"):
        reader_of(kind)([tmp_path / "b.data", tmp_path / "a.data"])
    with pytest.raises(ps.ConfigError, match="a.data has no column 'y'"):
        reader_of(kind)(tmp_path / "?.data", columns=["x", "y"])
    with pytest.raises(ps.ConfigError, match="columns="):
        reader_of(kind)(tmp_path / "?.data", columns="x")
    with pytest.raises(ps.ConfigError, match="two columns are called 'x'"):
        reader_of(kind)(tmp_path / "?.data", columns=["x", "x"])
    assert len(reader_of(kind)(tmp_path / "a.data", columns=["at"]).element_spec["at"]) == 2


def test_a_state_knows_other_files_but_not_a_copy_of_them(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    for kind in ("parquet", "compressed", "arrow"):
        def loader(folder, kind=kind):
            return ps.Loader(reader_of(kind)(tmp_path / folder / "*.data").batch(8))

        WRITERS[kind](table_of(0, 50), tmp_path / "a" / "x.data")
        shutil.copy(tmp_path / "a" / "x.data", tmp_path / "b" / "x.data")
        state = loader("a").state_dict()
        loader("b").load_state_dict(state)
        for other in (table_of(1, 50), table_of(0, 49)):
            WRITERS[kind](other, tmp_path / "b" / "x.data")
            with pytest.raises(ps.StateError):
                loader("b").load_state_dict(state)


def test_nulls(tmp_path):
    pq.write_table(pa.table({"x": [1.5, None, 2.5, 3.5]}), tmp_path / "x.parquet",
                   row_group_size=2)
    with pytest.raises(ps.SampleError, match=r'column "x": the value is null.*x\.parquet'):
        list(ps.from_parquet(tmp_path / "x.parquet"))
    rows = ps.from_parquet(tmp_path / "x.parquet", nulls={"x": -1})
    assert [float(row["x"]) for row in rows] == [1.5, -1, 2.5, 3.5]
    loader = ps.Loader(ps.from_parquet(tmp_path / "x.parquet").batch(4), on_error="skip")
    assert [batch["x"].tolist() for batch in loader] == [[1.5, 2.5, 3.5]]
    with pytest.raises(ps.ConfigError, match="from_parquet: nulls"):
        ps.from_parquet(tmp_path / "x.parquet", nulls=3)
    write_ipc(pa.table({"x": [1.5, None]}), tmp_path / "x.arrow")
    with pytest.raises(ps.SampleError, match=r'column "x": the value is null.*x\.arrow'):
        list(ps.from_arrow_files(tmp_path / "x.arrow"))


def test_bad_files_are_named(tmp_path):
    whole = tmp_path / "whole.parquet"
    pq.write_table(table_of(0, 100), whole, row_group_size=10)
    data = whole.read_bytes()
    for name, content in {"empty": b"", "text": b"hello, world, this is no table",
                          "cut": data[:-20], "short": data[:10],
                          "longer": data[:-8] + b"\xff\xff\xff\x7fPAR1",
                          "footer": data[:-300] + bytes(200) + data[-100:]}.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ps.ConfigError, match=name):
            ps.from_parquet([whole, tmp_path / name])
    for missing in ("missing.parquet", "*.missing"):
        with pytest.raises(ps.ConfigError, match="no file matches"):
            ps.from_parquet(tmp_path / missing)
    with pytest.raises(ps.ConfigError, match="is a folder"):
        ps.from_parquet(tmp_path)
    with pytest.raises(ps.ConfigError, match="no paths"):
        ps.from_parquet([])
    with pytest.raises(ps.ConfigError, match="paths"):
        ps.from_parquet(3)
    pq.write_table(pa.table({"id": ["a"]}), tmp_path / "other.parquet")
    with pytest.raises(ps.ConfigError, match="column 'id' is string in .*other.*int64 in .*whole"):
        ps.from_parquet([whole, tmp_path / "other.parquet"], columns=["id"])
    pq.write_table(pa.table({"odd": [["a"]]}), tmp_path / "odd.parquet")
    with pytest.raises(ps.ConfigError, match='from_parquet: column "odd" has the type'):
        ps.from_parquet(tmp_path / "odd.parquet")


def test_bad_arrow_files_are_named(tmp_path):
    whole = tmp_path / "whole.arrow"
    write_ipc(table_of(0, 100), whole, rows=10)
    data = whole.read_bytes()
    for name, content in {"empty": b"", "text": b"hello, world, this is no table",
                          "cut": data[:-20], "half": data[:len(data) // 2],
                          "version1": b"FEA1" + bytes(50)}.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ps.ConfigError, match=name):
            ps.from_arrow_files([whole, tmp_path / name])


def test_a_damaged_row_group_fails_its_rows_and_no_others(tmp_path):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"id": np.arange(100)}), path, row_group_size=10,
                   compression="gzip", use_dictionary=False, write_page_checksum=True)
    column = pq.read_metadata(path).row_group(3).column(0)
    data = bytearray(path.read_bytes())
    at = column.data_page_offset + column.total_compressed_size - 3
    data[at] ^= 0xFF
    path.write_bytes(data)
    rows = ps.from_parquet(path)
    with pytest.raises(ps.SampleError, match=r"row group 3: .*CRC.*x\.parquet"):
        list(rows)
    with ps.Loader(rows.shuffle(seed=1).batch(7), on_error="skip", skip_limit=10,
                   threads=3) as loader:
        seen = sorted(sum((batch["id"].tolist() for batch in loader), []))
        assert seen == [*range(30), *range(40, 100)]
        assert len(loader.ledger) == 10


def test_a_file_that_changed_after_the_definition_fails(tmp_path):
    path = tmp_path / "x.parquet"
    pq.write_table(table_of(0, 100), path, row_group_size=10)
    rows = ps.from_parquet(path, chunk_bytes_max=1)
    copy = ps.from_parquet(path, chunk_bytes_max=1)
    assert int(rows.sample(5)["id"]) == 5
    shutil.copy(path, tmp_path / "same")
    os.replace(tmp_path / "same", path)  # another file with the same content is fine
    assert int(rows.sample(15)["id"]) == 15
    pq.write_table(table_of(1000, 100), path, row_group_size=10)
    with pytest.raises(ps.SampleError, match=r"x.parquet.*has changed"):
        rows.sample(25)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(ps.SampleError, match="x.parquet"):
        copy.sample(35)
    path.unlink()
    with pytest.raises(ps.SampleError, match="x.parquet"):
        copy.sample(45)


def test_row_groups_are_decoded_once_while_they_fit(tmp_path, monkeypatch):
    path = tmp_path / "x.parquet"
    pq.write_table(table_of(0, 400), path, row_group_size=50)
    read = []
    real = pq.ParquetFile.read_row_group

    def counted(self, group, **options):
        read.append(group)
        return real(self, group, **options)

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", counted)
    rows = ps.from_parquet(path)
    assert read == []
    with ps.Loader(rows.shuffle(seed=1).batch(16), threads=4) as loader:
        for _ in range(3):
            assert sum(len(batch) for batch in loader) == 400
    assert sorted(read) == list(range(8))
    few = ps.Loader(ps.from_parquet(path, chunk_bytes_max=1).batch(16), threads=1)
    assert sum(len(batch) for batch in few) == 400
    assert len(read) <= 8 + 16


def test_the_plan_warns_of_a_whole_shuffle_of_row_groups_that_do_not_fit(tmp_path):
    path = tmp_path / "x.parquet"
    pq.write_table(table_of(0, 400), path, row_group_size=50)
    small = ps.from_parquet(path, chunk_bytes_max=1000)
    assert "a row costs a row group of 50 rows; shuffle(blocks=...)" in (
        ps.Loader(small.shuffle(seed=1).batch(8)).plan.explain())
    assert "warning" not in ps.Loader(small.batch(8)).plan.explain()
    assert "warning" not in ps.Loader(ps.from_parquet(path).shuffle(seed=1).batch(8)).plan.explain()


def test_few_files_stay_open(tmp_path):
    paths = [tmp_path / f"{i:03}.parquet" for i in range(100)]
    for i, path in enumerate(paths):
        pq.write_table(pa.table({"id": [i]}), path)
    rows = ps.from_parquet(tmp_path / "*.parquet", chunk_bytes_max=1)
    before = len(os.listdir("/proc/self/fd"))
    with ps.Loader(rows.shuffle(seed=1).batch(10), threads=2) as loader:
        assert sorted(sum((b["id"].tolist() for b in loader), [])) == list(range(100))
    assert len(os.listdir("/proc/self/fd")) <= before + 16 + 2 + 4


def test_names_that_are_not_utf8(tmp_path):
    path = os.fsencode(tmp_path) + b"/\xff[1].parquet"
    with open(path, "wb") as file:
        pq.write_table(pa.table({"id": [1, 2]}), file)
    assert [int(row["id"]) for row in ps.from_parquet(path)] == [1, 2]


def test_files_of_pandas_polars_and_duckdb(tmp_path):
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    duckdb = pytest.importorskip("duckdb")
    columns = {"n": list(range(30)), "x": [i * 0.5 for i in range(30)],
               "name": [f"row {i}" for i in range(30)]}
    expected = pa.table(columns).to_pylist()
    pandas.DataFrame(columns).to_parquet(tmp_path / "pandas.parquet", row_group_size=7)
    pandas.DataFrame(columns).to_feather(tmp_path / "pandas.feather")
    polars.DataFrame(columns).write_parquet(tmp_path / "polars.parquet", row_group_size=7)
    polars.DataFrame(columns).write_ipc(tmp_path / "polars.arrow")
    polars.DataFrame(columns).write_ipc(tmp_path / "polars_lz4.arrow", compression="lz4")
    polars.DataFrame(columns).write_ipc_stream(tmp_path / "polars_stream.arrow")
    frame = polars.DataFrame(columns)  # noqa: F841  DuckDB reads it by name
    duckdb.sql(f"copy (select * from frame) to '{tmp_path}/duckdb.parquet' (format parquet)")
    for name in ("pandas", "polars", "duckdb"):
        assert rows_of(ps.from_parquet(tmp_path / f"{name}.parquet")) == expected, name
    for name in ("pandas.feather", "polars.arrow", "polars_lz4.arrow", "polars_stream.arrow"):
        assert rows_of(ps.from_arrow_files(tmp_path / name)) == expected, name


def test_files_of_hugging_face(tmp_path):
    datasets = pytest.importorskip("datasets")
    data = datasets.Dataset.from_dict({
        "tokens": [list(range(i % 5)) for i in range(50)], "text": [str(i) for i in range(50)],
        "label": list(range(50))})
    data.save_to_disk(tmp_path / "saved", num_shards=3)
    assert rows_of(ps.from_arrow_files(tmp_path / "saved" / "*.arrow")) == list(data)
    data.to_parquet(tmp_path / "x.parquet")
    assert rows_of(ps.from_parquet(tmp_path / "x.parquet")) == list(data)


def test_a_run_is_resumed_in_the_middle(tmp_path):
    for i in range(3):
        pq.write_table(table_of(i * 40, 40), tmp_path / f"{i}.parquet", row_group_size=16)

    def loader():
        rows = ps.from_parquet(tmp_path / "*.parquet", columns=["id", "tokens"], chunk_bytes_max=1)
        return ps.Loader(rows.shuffle(seed=3).batch(7))

    whole = [batch["id"].tolist() for batch in loader()]
    with loader() as first:
        steps = iter(first)
        begun = [next(steps)["id"].tolist() for _ in range(5)]
        state = first.state_dict()
    with loader() as second:
        second.load_state_dict(state)
        assert begun + [batch["id"].tolist() for batch in second] == whole
