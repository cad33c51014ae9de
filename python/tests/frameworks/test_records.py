"""Files of webdataset, pandas, Streaming and LitData are read as those libraries read them."""

import io
import json

import numpy as np
import pytest

wds = pytest.importorskip("webdataset")
import penstock as ps  # noqa: E402


@pytest.fixture
def shards(tmp_path):
    with wds.ShardWriter(str(tmp_path / "s-%03d.tar"), maxcount=8, verbose=0) as sink:
        for i in range(30):
            sink.write({"__key__": f"sample{i:04}", "txt": f"text {i}", "cls": i % 5,
                        "json": {"n": i}, "bin": bytes([i]) * 700,
                        "x.npy": np.full((2, 3), i, np.float32)})
    return tmp_path


def test_shards_of_webdataset_are_read_as_it_reads_them(shards):
    paths = sorted(map(str, shards.glob("s-*.tar")))
    theirs = list(wds.WebDataset(paths, shardshuffle=False).decode())
    ours = ps.from_tar(str(shards / "s-{000..003}.tar"), key=True)
    assert len(ours) == len(theirs) == 30
    for mine, other in zip(ours, theirs, strict=True):
        assert mine["__key__"] == other["__key__"] and mine["txt"] == other["txt"]
        assert mine["cls"] == other["cls"] and json.loads(str(mine["json"])) == other["json"]
        assert mine["bin"] == other["bin"]
        assert np.array_equal(np.load(io.BytesIO(mine["x.npy"])), other["x.npy"])


def test_compressed_shards_are_streams(tmp_path):
    with wds.TarWriter(str(tmp_path / "a.tar.gz")) as sink:
        for i in range(10):
            sink.write({"__key__": f"{i}", "cls": i})
    ours = ps.from_tar(tmp_path / "a.tar.gz")
    assert ours.streamed and [row["cls"] for row in ours] == list(range(10))


def test_what_we_write_webdataset_reads(tmp_path):
    data = ps.from_index(20, lambda i: {"label": i % 4, "text": f"t{i}", "x": np.float32([i, 1])})
    ps.write_records(data, tmp_path / "out", "tar", shards=2)
    paths = sorted(map(str, (tmp_path / "out").glob("*.tar")))
    read = list(wds.WebDataset(paths, shardshuffle=False).decode())
    assert [row["cls"] for row in read] == [i % 4 for i in range(20)]
    assert [row["txt"] for row in read] == [f"t{i}" for i in range(20)]
    assert all(np.array_equal(row["x.npy"], [i, 1]) for i, row in enumerate(read))


def test_csv_and_json_lines_of_pandas(tmp_path):
    pandas = pytest.importorskip("pandas")
    random = np.random.default_rng(1)
    frame = pandas.DataFrame({"i": random.integers(-9, 9, 50), "f": random.random(50),
                              "s": [f'a "{i}",\n b' for i in range(50)],
                              "b": random.random(50) < 0.5})
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_json(tmp_path / "a.jsonl", orient="records", lines=True, double_precision=15)
    for data in (ps.from_csv(tmp_path / "a.csv", floats="float64"),
                 ps.from_jsonl(tmp_path / "a.jsonl", floats="float64")):
        rows = list(data)
        assert [row["i"] for row in rows] == frame["i"].tolist()
        assert np.allclose([row["f"] for row in rows], frame["f"], rtol=0, atol=1e-15)
        assert [str(row["s"]) for row in rows] == frame["s"].tolist()
        assert [bool(row["b"]) for row in rows] == frame["b"].tolist()


def test_shards_of_streaming(tmp_path):
    streaming = pytest.importorskip("streaming")
    columns = {"id": "int", "text": "str", "x": "ndarray:float32:3", "raw": "bytes",
               "n": "uint8"}
    with streaming.MDSWriter(out=str(tmp_path / "mds"), columns=columns, size_limit=2000) as out:
        for i in range(60):
            out.write({"id": i, "text": f"text {i}" * (i % 3), "raw": bytes([i]) * (i % 7),
                       "x": np.float32([i, i / 2, -1]), "n": np.uint8(i)})
    theirs = streaming.LocalDataset(str(tmp_path / "mds"))
    ours = ps.from_mds(tmp_path / "mds")
    assert len(ours) == len(theirs) == 60
    for i, mine in enumerate(ours):
        other = theirs[i]
        assert mine["id"] == other["id"] and mine["text"] == other["text"]
        assert mine["raw"] == other["raw"] and mine["n"] == other["n"]
        assert np.array_equal(mine["x"], other["x"])
    ids = [i for batch in ps.Loader(ours.shuffle(seed=1).batch(7)) for i in batch["id"].tolist()]
    assert sorted(ids) == list(range(60)) and ids != sorted(ids)


def stored(i):
    """What `optimize` stores of item i; a function of this module, since it starts processes."""
    import torch
    from PIL import Image

    return {"id": i, "text": f"text {i}" * (i % 3), "score": i / 3, "even": i % 2 == 0,
            "raw": bytes([i]) * (i % 7), "x": np.arange(6, dtype=np.float32).reshape(2, 3) + i,
            "ragged": np.arange(i % 5, dtype=np.int16), "t": torch.full((1 + i % 2, 2), i),
            "tokens": torch.arange(3) + i, "scalar": torch.tensor(i / 2),
            "nested": {"pair": (i, f"{i}"), "list": [i, {"a": None, "b": [0.5 * i]}]},
            "picture": Image.fromarray(np.full((2, 3, 3), i, np.uint8))}


def document(i):
    import torch

    return torch.arange(i % 4 + 3, dtype=torch.int32) + 100 * i


def optimized(folder, function, count, **options):
    litdata = pytest.importorskip("litdata")
    litdata.optimize(fn=function, inputs=list(range(count)), output_dir=str(folder),
                     **{"num_workers": 1, **options})
    return litdata


def same(mine, other):
    """Whether a value of ours is one of theirs, in value, dtype and structure."""
    if isinstance(other, dict):
        return mine.keys() == other.keys() and all(same(mine[key], other[key]) for key in other)
    if isinstance(other, tuple):
        return len(mine) == len(other) and all(map(same, mine, other))
    if isinstance(other, list):                     # stored as JSON
        return json.loads(str(mine)) == other
    if isinstance(other, (str, bool, int, float)):
        return type(other)(mine) == other
    other = np.asarray(other)                       # also of torch and Pillow
    if isinstance(mine, bytes):
        return mine == other.tobytes()
    return mine.dtype == other.dtype and np.array_equal(mine, other)


@pytest.mark.parametrize("workers", [1, 2])
def test_chunks_of_litdata_are_read_as_it_reads_them(tmp_path, workers):
    litdata = optimized(tmp_path / "data", stored, 60, chunk_size=8, num_workers=workers)
    theirs = litdata.StreamingDataset(str(tmp_path / "data"), shuffle=False)
    ours = ps.from_litdata(tmp_path / "data")
    assert len(ours) == len(theirs) == 60
    rows = list(theirs)
    assert all(same(mine, other) for mine, other in zip(ours, rows, strict=True))
    order = []
    for batch in ps.Loader(ours.shuffle(seed=1).batch(7)):
        for i in range(len(batch)):
            order.append(int(batch["id"][i]))
            other = next(row for row in rows if row["id"] == order[-1])
            assert same(batch["x"][i], other["x"]) and same(batch["t"][i], other["t"])
            assert same(batch["ragged"][i], other["ragged"]) and same(batch["raw"][i], other["raw"])
    assert sorted(order) == list(range(60)) and order != sorted(order)


def test_tokens_of_litdata_are_windows(tmp_path):
    litdata = pytest.importorskip("litdata")
    optimized(tmp_path / "data", document, 40, chunk_size=50, item_loader=litdata.TokensLoader())
    for length in (4, 7):
        theirs = litdata.StreamingDataset(str(tmp_path / "data"), shuffle=False,
                                          item_loader=litdata.TokensLoader(block_size=length))
        ours = ps.from_litdata(tmp_path / "data", length=length)
        assert len(ours) == len(theirs)
        assert np.array_equal(list(ours), np.stack([row.numpy() for row in theirs]))
    assert [row.tolist() for row in ps.from_litdata(tmp_path / "data")] == [
        document(i).tolist() for i in range(40)]


def row_of_arrow(i):
    return {"text": f"text {i}", "id": i, "score": i / 4, "even": i % 2 == 0, "ids": [i] * (i % 3)}


@pytest.mark.parametrize("compression", [None, "zstd"])
def test_rows_of_arrow_in_chunks_of_litdata_are_read_too(tmp_path, compression):
    pytest.importorskip("pyarrow")
    litdata = optimized(tmp_path / "data", row_of_arrow, 50, chunk_size=8, compression=compression)
    theirs = list(litdata.StreamingDataset(str(tmp_path / "data"), shuffle=False))
    ours = ps.from_litdata(tmp_path / "data")
    assert len(ours) == 50
    for mine, other in zip(ours, theirs, strict=True):
        assert mine["ids"].tolist() == other.pop("ids") == [mine["id"]] * (mine["id"] % 3)
        assert {key: mine[key] for key in other} == other
    ids = [i for batch in ps.Loader(ours.shuffle(seed=2).batch(8)) for i in batch["id"].tolist()]
    assert sorted(ids) == list(range(50)) and ids != sorted(ids)
    only = ps.from_litdata(tmp_path / "data", fields=["text"])
    assert only.sample(3) == {"text": "text 3"}
    path = tmp_path / "data" / "chunk-0-0.bin"
    whole = path.read_bytes()
    for damaged in (whole[:-1], whole[:4], whole[:-12] + b"\xff" * 4 + whole[-8:],
                    whole[-60:]):
        path.write_bytes(damaged)
        with pytest.raises(ps.ConfigError, match="chunk-0-0.bin"):
            ps.from_litdata(tmp_path / "data")


def test_compressed_chunks_of_litdata_are_refused_with_the_way_out(tmp_path):
    zstd = pytest.importorskip("zstd")
    with_pixels = {"chunk_size": 4, "compression": "zstd"}
    optimized(tmp_path / "chunk", stored, 8, compression_level="chunk", **with_pixels)
    with pytest.raises(ps.ConfigError, match="zstd -d chunk-0-0.zstd.bin -o chunk-0-0.bin"):
        ps.from_litdata(tmp_path / "chunk")
    for path in (tmp_path / "chunk").glob("*.zstd.bin"):
        plain = path.with_name(path.name.replace(".zstd.bin", ".bin"))
        plain.write_bytes(zstd.decompress(path.read_bytes()))
    assert [row["id"] for row in ps.from_litdata(tmp_path / "chunk")] == list(range(8))
    optimized(tmp_path / "sample", stored, 8, compression_level="sample", **with_pixels)
    assert [row["id"] for row in ps.from_litdata(tmp_path / "sample")] == list(range(8))
    optimized(tmp_path / "batch", stored, 8, **with_pixels)
    with pytest.raises(ps.ConfigError, match="frames of zstd"):
        ps.from_litdata(tmp_path / "batch")
