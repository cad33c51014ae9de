"""Files of webdataset, pandas and MosaicML Streaming are read as those libraries read them."""

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
