"""ps.from_arrow and tokenize with the real pyarrow, polars, DuckDB, datasets and tokenizers."""

import datetime
import os
import subprocess
import sys

os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1")

import numpy as np  # noqa: E402
import pytest  # noqa: E402

datasets = pytest.importorskip("datasets")
tokenizers = pytest.importorskip("tokenizers")

import polars  # noqa: E402
import pyarrow as pa  # noqa: E402
import pyarrow.csv  # noqa: E402
import pyarrow.json  # noqa: E402
import pyarrow.parquet  # noqa: E402

import penstock as ps  # noqa: E402
from tokenizers_for_tests import TEXTS, trained  # noqa: E402


def plain(value):
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    return value.tolist() if hasattr(value, "tolist") else value


def rows_of(dataset):
    return [plain(row) for row in dataset]


def columns(seed, rows=40):
    """Columns of every supported kind, without nulls."""
    draw = np.random.default_rng(seed)
    lengths = draw.integers(0, 6, rows)
    return {
        "flag": pa.array(draw.random(rows) < 0.5),
        "number": pa.array(draw.integers(-9, 9, rows)),
        "small": pa.array(draw.integers(0, 9, rows).astype(np.uint8)),
        "half": pa.array(draw.random(rows).astype(np.float16)),
        "x": pa.array(draw.random(rows)),
        "text": pa.array([f"text {i} " * (i % 4) for i in range(rows)]),
        "large": pa.array([f"ä{i}" for i in range(rows)], pa.large_string()),
        "view": pa.array([f"view {i} " * (i % 4) for i in range(rows)], pa.string_view()),
        "bytes": pa.array([bytes([i]) * (i % 3) for i in range(rows)]),
        "tokens": pa.array([list(range(n)) for n in lengths], pa.list_(pa.int32())),
        "long_list": pa.array([[0.5] * n for n in lengths], pa.large_list(pa.float32())),
        "flags": pa.array([[True, False] * n for n in lengths]),
        "boxes": pa.array([[[i, j] for j in range(n)] for i, n in enumerate(lengths)],
                          pa.list_(pa.list_(pa.float32(), 2))),
        "pair": pa.array([[i, i + 1] for i in range(rows)], pa.list_(pa.int16(), 2)),
        "color": pa.array(["red" if i % 3 else "blue" for i in range(rows)]).dictionary_encode(),
        "at": pa.array([{"row": i, "column": {"name": str(i)}} for i in range(rows)]),
    }


def table_of(seed, rows=40):
    return pa.table(columns(seed, rows))


def views(table, seed):
    """The table whole, in chunks, and as slices of chunks."""
    draw = np.random.default_rng(seed)
    cut = sorted(int(each) for each in draw.integers(0, len(table), 2))
    chunks = pa.concat_tables([table[:cut[0]], table[cut[0]:cut[1]], table[cut[1]:]])
    return [table, chunks, table[3:17], chunks[cut[0] // 2:-2], table[:0]]


@pytest.mark.parametrize("seed", range(5))
def test_every_kind_of_column_in_every_kind_of_table(seed):
    for table in views(table_of(seed), seed):
        assert rows_of(ps.from_arrow(table)) == table.to_pylist()


def test_batches_readers_and_struct_arrays():
    table = table_of(1)
    batch = table.combine_chunks().to_batches()[0]
    expected = table.to_pylist()
    assert rows_of(ps.from_arrow(batch)) == expected
    assert rows_of(ps.from_arrow(pa.RecordBatchReader.from_batches(table.schema, [batch]))) == (
        expected)

    class OnlyArray:
        def __arrow_c_array__(self, requested_schema=None):
            return batch.__arrow_c_array__(requested_schema)

    assert rows_of(ps.from_arrow(OnlyArray())) == expected


@pytest.mark.parametrize("seed", range(3))
def test_data_frames_of_polars(seed):
    frame = polars.from_arrow(table_of(seed).drop_columns(["half", "bytes", "flags"]))
    assert rows_of(ps.from_arrow(frame)) == frame.to_dicts()
    part = polars.concat([frame[20:], frame[:20]], rechunk=False)[5:30]
    assert rows_of(ps.from_arrow(part)) == part.to_dicts()


def test_relations_of_duckdb():
    duckdb = pytest.importorskip("duckdb")
    found = duckdb.sql("select range as n, range * 0.5 :: double as x, 'r' || range as name "
                       "from range(3000)")
    rows = rows_of(ps.from_arrow(found))
    assert rows[2999] == {"n": 2999, "x": 1499.5, "name": "r2999"} and len(rows) == 3000


@pytest.mark.parametrize("view", ["whole", "selected", "shuffled", "concatenated"])
def test_datasets_of_hugging_face(view):
    data = datasets.Dataset.from_dict({
        "tokens": [list(range(i % 5)) for i in range(50)], "text": [str(i) for i in range(50)],
        "label": list(range(50))})
    data = {"whole": lambda: data, "selected": lambda: data.select(range(7, 30)),
            "shuffled": lambda: data.shuffle(seed=3),
            "concatenated": lambda: datasets.concatenate_datasets([data, data.select([3, 1])])
            }[view]()
    assert rows_of(ps.from_arrow(data)) == list(data)
    seen = [row for rank in range(3) for batch in ps.Loader(
        ps.from_arrow(data).shuffle(seed=1).batch(8), world=3, rank=rank)
        for row in batch["label"].tolist()]
    assert sorted(seen) == sorted(data["label"])


def test_files_through_their_libraries(tmp_path):
    table = pa.table({"price": [1.5, 2.5], "name": ["a", "b"]})
    pyarrow.csv.write_csv(table, tmp_path / "x.csv")
    pyarrow.parquet.write_table(table, tmp_path / "x.parquet")
    (tmp_path / "x.jsonl").write_text('{"price": 1.5, "name": "a"}\n{"price": 2.5, "name": "b"}\n')
    expected = table.to_pylist()
    for read in (pyarrow.csv.read_csv(tmp_path / "x.csv"),
                 pyarrow.parquet.read_table(tmp_path / "x.parquet"),
                 pyarrow.json.read_json(tmp_path / "x.jsonl"),
                 polars.read_csv(tmp_path / "x.csv"), polars.read_parquet(tmp_path / "x.parquet"),
                 polars.read_ndjson(tmp_path / "x.jsonl")):
        assert rows_of(ps.from_arrow(read)) == expected


def test_nulls():
    table = pa.table({"x": [1.5, None, 2.5], "name": ["a", None, None],
                      "tokens": pa.array([[1, None], None, [2]], pa.list_(pa.int64()))})
    with pytest.raises(ps.SampleError, match='column "(x|name|tokens)".*null'):
        list(ps.from_arrow(table))
    rows = ps.from_arrow(table, nulls={"x": 0, "name": "?", "tokens": -1})
    assert rows_of(rows) == [{"x": 1.5, "name": "a", "tokens": [1, -1]},
                             {"x": 0, "name": "?", "tokens": []},
                             {"x": 2.5, "name": "?", "tokens": [2]}]
    kept = ps.Loader(ps.from_arrow(table, nulls={"x": 0, "name": ""}).batch(3), on_error="skip")
    assert [batch["x"].tolist() for batch in kept] == [[2.5]]
    empty = ps.from_arrow(table[1:], nulls={"x": float("nan"), "name": "", "tokens": []})
    assert np.isnan(empty.sample(0)["x"]) and empty.sample(0)["tokens"].size == 0


def test_a_csv_with_missing_values(tmp_path):
    (tmp_path / "x.csv").write_text("price,name\n1.5,a\n,b\n")
    table = pyarrow.csv.read_csv(tmp_path / "x.csv")
    assert rows_of(ps.from_arrow(table, nulls={"price": -1.0}))[1] == {"price": -1.0, "name": "b"}


def test_types_that_are_not_supported_are_named():
    for column in (pa.array([["a"], ["b"]]), pa.array([1, 2]).cast(pa.decimal128(30, 2)),
                   pa.array([None, None]), pa.array([[[1], [2, 3]], [[4]]])):
        with pytest.raises(ps.ConfigError, match='column "odd" has the type'):
            ps.from_arrow(pa.table({"odd": column}))


def test_dates_are_numbers():
    table = pa.table({"day": pa.array([datetime.date(1970, 1, 3)]),
                      "time": pa.array([datetime.datetime(1970, 1, 1, 0, 0, 1)])})
    (row,) = rows_of(ps.from_arrow(table))
    assert row == {"day": 2, "time": 1_000_000}


def test_lists_are_packed_with_every_token_once():
    lengths = np.random.default_rng(0).integers(0, 40, 3000)
    tokens = np.split(np.arange(lengths.sum()), np.cumsum(lengths)[:-1])
    table = pa.table({"tokens": pa.array(tokens, pa.list_(pa.int32()))})
    packed = ps.from_arrow(table).shuffle(seed=1).pack(64, how="best_fit", field="tokens").batch(7)
    seen = [token for batch in ps.Loader(packed)
            for token in batch["tokens"][batch["document"] >= 0].tolist()]
    assert sorted(seen) == list(range(lengths.sum()))


# Tokenizers


@pytest.fixture(scope="module")
def tokenizer():
    return trained()


@pytest.mark.parametrize("workers", [0, 2])
def test_tokenize_with_a_tokenizer_of_hugging_face(tokenizer, workers, tmp_path):
    (tmp_path / "lines.txt").write_text("\n".join([*TEXTS, ""]))
    ids = ps.from_text(tmp_path / "lines.txt").tokenize(tokenizer, workers=workers)
    with ps.Loader(ids.batch(9)) as loader:
        rows = [row for batch in loader for row in batch.numpy().tolist()]
    assert rows == [tokenizer.encode(text).ids for text in TEXTS]


def test_its_method_is_a_function_too(tokenizer):
    rows = ps.from_tensor_slices(TEXTS).tokenize(tokenizer.encode)
    assert [row.tolist() for row in rows] == [tokenizer.encode(text).ids for text in TEXTS]


@pytest.mark.parametrize("workers", [0, 2])
def test_tokenize_with_a_tokenizer_of_transformers(tokenizer, workers):
    transformers = pytest.importorskip("transformers")
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]")
    rows = ps.from_tensor_slices(TEXTS).tokenize(fast, workers=workers)
    assert [row.tolist() for row in rows] == [fast.encode(text) for text in TEXTS]


THREADS = """
import os, sys
import tokenizers
import penstock as ps

tokenizer = tokenizers.Tokenizer.from_file(sys.argv[1])
texts = ps.from_tensor_slices(["word1 word2", "", "word3"] * 100)


def threads_after(tokenize):
    assert sum(len(batch) for batch in ps.Loader(texts.tokenize(tokenize).batch(8))) == 300
    return len(os.listdir("/proc/self/task"))


assert threads_after(lambda text: [len(text)]) == threads_after(tokenizer)
"""


def test_a_tokenizer_starts_no_threads_of_its_own(tokenizer, tmp_path):
    tokenizer.save(str(tmp_path / "tokenizer.json"))  # training has started threads in this process
    done = subprocess.run([sys.executable, "-c", THREADS, tmp_path / "tokenizer.json"],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
