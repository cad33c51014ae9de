"""Files of records: TFRecord, tar, text, CSV, JSON lines, fixed-length records, NumPy; writing."""

import gzip
import io
import json
import os
import tarfile

import numpy as np
import pytest
from record_writers import example, frame, sequence_example

import penstock as ps


def rows_of(dataset, **options):
    """All samples of an epoch, as a list."""
    rows = []
    for batch in ps.Loader(dataset.batch(7), **options):
        values = batch.numpy()
        rows += [{name: _plain(values[name][i]) for name in values} if isinstance(values, dict)
                 else _plain(values[i]) for i in range(len(batch))]
    return rows


def _plain(value):
    return value.tolist() if hasattr(value, "tolist") else value


@pytest.fixture
def tfrecords(tmp_path):
    for part in range(4):
        with open(tmp_path / f"train-{part:02}.tfrecord", "wb") as file:
            for i in range(25 * part, 25 * part + 25):
                file.write(frame(example(id=i, name=f"n{i}".encode(), x=[i / 4, -1.0, 0.5],
                                         tags=list(range(i % 3)))))
    return tmp_path


def test_records_of_all_files_are_shuffled_as_a_whole_and_come_once(tfrecords):
    data = ps.from_tfrecord(tfrecords / "train-*.tfrecord",
                            {"id": "int64", "name": "bytes", "x": ps.Field("float32", (3,))})
    assert len(data) == 100
    rows = rows_of(data.shuffle(seed=3))
    ids = [row["id"] for row in rows]
    assert sorted(ids) == list(range(100)) and ids != sorted(ids)
    assert len({i // 25 for i in ids[:7]}) > 1
    assert all(row["name"] == f"n{row['id']}".encode() for row in rows)
    assert all(row["x"] == [row["id"] / 4, -1.0, 0.5] for row in rows)


def test_names_with_braces_are_files(tfrecords):
    spec = {"id": "int64"}
    data = ps.from_tfrecord(str(tfrecords / "train-{01..02}.tfrecord"), spec)
    assert [row["id"] for row in rows_of(data)] == list(range(25, 75))
    paths = [tfrecords / "train-03.tfrecord", tfrecords / "train-00.tfrecord"]
    assert rows_of(ps.from_tfrecord(paths, spec))[0]["id"] == 75


def test_a_loader_of_records_resumes_at_every_step_with_other_processes(tfrecords):
    data = ps.from_tfrecord(tfrecords / "train-*", {"id": "int64"}).shuffle(seed=1).batch(8)
    whole = [batch["id"].tolist() for batch in ps.Loader(data)]
    loader = ps.Loader(data)
    for step, _ in enumerate(loader):
        state = json.loads(json.dumps(loader.state_dict()))
        rest = []
        for rank in range(2):
            part = ps.Loader(data, rank=rank, world=2, empty="deliver")
            part.load_state_dict(state)
            rest.append([batch["id"].tolist() for batch in part])
        joined = [sum(shares, []) for shares in zip(*rest, strict=True)]
        assert joined == (whole[step + 1:] or whole)
        if step + 2 == len(whole):
            break


def test_features_are_inferred_and_listed(tfrecords):
    data = ps.from_tfrecord(tfrecords / "train-*.tfrecord")
    assert set(data.element_spec) == {"id", "name", "x", "tags"}
    assert data.element_spec["x"].shape == (3,)
    assert data.element_spec["tags"].shape == (None,)
    assert "inferred" in ps.Loader(data.batch(2)).plan.explain()
    assert rows_of(data)[2]["tags"] == [0, 1]


def test_variable_missing_and_raw_features(tmp_path):
    image = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    with open(tmp_path / "a.tfrecord", "wb") as file:
        file.write(frame(example(image=image.tobytes(), score=0.5)))
        file.write(frame(example(image=image.tobytes())))
    data = ps.from_tfrecord(tmp_path / "a.tfrecord", {
        "image": ps.Feature("uint8", (2, 2, 3), raw=True),
        "score": ps.Feature("float32", missing=-1.0),
        "tags": ps.Field("int64", (None,)),
    })
    first, second = data.sample(0), data.sample(1)
    assert np.array_equal(first["image"], image)
    assert first["score"] == 0.5 and second["score"] == -1.0
    assert first["tags"].tolist() == []


def test_steps_of_a_sequence_example(tmp_path):
    with open(tmp_path / "a.tfrecord", "wb") as file:
        file.write(frame(sequence_example({"id": 1}, {"frames": [[1.0, 2.0], [3.0, 4.0]]})))
        file.write(frame(sequence_example({"id": 2}, {"frames": [[5.0, 6.0]]})))
    data = ps.from_tfrecord(tmp_path / "a.tfrecord",
                            {"id": "int64", "frames": ps.Feature("float32", (2,), sequence=True)})
    assert data.sample(0)["frames"].tolist() == [[1, 2], [3, 4]]
    assert data.sample(1)["frames"].tolist() == [[5, 6]]


def test_raw_records_are_bytes(tmp_path):
    (tmp_path / "a.tfrecord").write_bytes(frame(b"one") + frame(b"") + frame(b"three"))
    assert rows_of(ps.from_tfrecord(tmp_path / "a.tfrecord", raw=True)) == [b"one", b"", b"three"]


def test_compressed_files_are_streams_of_the_same_records(tfrecords):
    for part in range(4):
        plain = (tfrecords / f"train-{part:02}.tfrecord").read_bytes()
        (tfrecords / f"packed-{part}.gz").write_bytes(gzip.compress(plain))
    packed = ps.from_tfrecord(tfrecords / "packed-*.gz", {"id": "int64"})
    assert packed.streamed
    assert [row["id"] for row in rows_of(packed)] == list(range(100))
    assert sorted(row["id"] for row in rows_of(packed.shuffle(window=40))) == list(range(100))


def test_damaged_records_are_named_skipped_and_listed(tfrecords):
    path = tfrecords / "train-01.tfrecord"
    data = bytearray(path.read_bytes())
    data[40] ^= 1                                # in the payload of its first record
    path.write_bytes(data[:-3])                  # and the last one is cut
    dataset = ps.from_tfrecord(tfrecords / "train-*.tfrecord", {"id": "int64"})
    assert len(dataset) == 100
    with pytest.raises(ps.SampleError, match="record 0"):
        rows_of(dataset)
    loader = ps.Loader(dataset.batch(7), on_error="skip")
    ids = [i for batch in loader for i in batch["id"].tolist()]
    assert sorted(ids) == [i for i in range(100) if i not in (25, 49)]
    assert [entry["file"] for entry in loader.ledger] == [str(path)] * 2


def test_a_missing_feature_says_which_ones_are_there(tfrecords):
    with pytest.raises(ps.SampleError, match="label.*id"):
        rows_of(ps.from_tfrecord(tfrecords / "*-00.tfrecord", {"label": "int64"}))


def test_the_index_is_stored_where_it_is_asked_for(tfrecords, tmp_path):
    cache = tmp_path / "cache"
    cache.mkdir()
    spec = {"id": "int64"}
    calls = []
    ps.from_tfrecord(tfrecords / "train-*.tfrecord", spec, index=cache,
                     progress=lambda done, total: calls.append((done, total)))
    assert len(list(cache.iterdir())) == 4
    assert calls[-1][0] == calls[-1][1] > 0
    assert len(ps.from_tfrecord(tfrecords / "train-*.tfrecord", spec, index=cache)) == 100


def add_member(archive, name, data):
    member = tarfile.TarInfo(name)
    member.size = len(data)
    archive.addfile(member, io.BytesIO(data))


def test_members_of_one_name_in_a_tar_are_one_sample(tmp_path):
    for part in range(3):
        with tarfile.open(tmp_path / f"shard-{part:03}.tar", "w") as archive:
            for i in range(10 * part, 10 * part + 10):
                add_member(archive, f"dir/{i:04}.jpg", b"jpeg%d" % i)
                add_member(archive, f"dir/{i:04}.cls", b"%d" % (i % 4))
                add_member(archive, f"dir/{i:04}.json", json.dumps({"n": i}).encode())
    data = ps.from_tar(str(tmp_path / "shard-{000..002}.tar"),
                       {"image": "png;jpg", "label": "cls", "meta": "json"}, key=True)
    assert len(data) == 30
    rows = rows_of(data.shuffle(seed=2))
    assert sorted(row["__key__"] for row in rows) == [f"dir/{i:04}" for i in range(30)]
    for row in rows:
        number = json.loads(row["meta"])["n"]
        assert row["image"] == b"jpeg%d" % number and row["label"] == number % 4
    inferred = ps.from_tar(tmp_path / "shard-000.tar")
    assert set(inferred.element_spec) == {"jpg", "cls", "json"}
    assert "inferred from the first 10 samples" in ps.Loader(inferred.batch(2)).plan.explain()


def test_lines_of_text(tmp_path):
    (tmp_path / "a.txt").write_bytes("\ufeffone\r\n\ntwo".encode())
    (tmp_path / "b.txt").write_bytes(b"three\n")
    assert rows_of(ps.from_text(tmp_path / "*.txt")) == ["one", "", "two", "three"]


def test_rows_of_csv(tmp_path):
    (tmp_path / "a.csv").write_text('id,price,name,ok\n1,0.5,"a, ""b""\nc",true\n2,,d,false\n')
    data = ps.from_csv(tmp_path / "a.csv", nulls={"price": -1.0})
    assert rows_of(data) == [{"id": 1, "price": 0.5, "name": 'a, "b"\nc', "ok": True},
                             {"id": 2, "price": -1.0, "name": "d", "ok": False}]
    some = ps.from_csv(tmp_path / "a.csv", columns=["name", "id"], types={"id": "float64"})
    assert some.element_spec["id"].dtype == "float64" and set(some.element_spec) == {"id", "name"}
    with pytest.raises(ps.SampleError, match="price"):
        rows_of(ps.from_csv(tmp_path / "a.csv"))


def test_objects_of_json_lines(tmp_path):
    (tmp_path / "a.jsonl").write_text(
        '{"id": 1, "x": [1.5, 2], "in": {"name": "a"}}\n\n{"id": 2, "x": [], "in": {"name": "b"}}')
    data = ps.from_jsonl(tmp_path / "a.jsonl")
    assert len(data) == 2
    first, second = data.sample(0), data.sample(1)
    assert first["x"].tolist() == [1.5, 2] and second["x"].tolist() == []
    assert second["in"]["name"] == "b"
    assert ps.from_jsonl(tmp_path / "a.jsonl", fields={"id": "float32"}).sample(1)["id"] == 2
    assert json.loads(ps.from_jsonl(tmp_path / "a.jsonl", raw=True).sample(0))["id"] == 1


def test_fixed_records(tmp_path):
    rows = np.arange(60, dtype=np.float32).reshape(10, 6)
    (tmp_path / "a.bin").write_bytes(b"head" + rows.tobytes())
    data = ps.from_records(tmp_path / "a.bin", 24, header_bytes=4, dtype="float32", shape=(2, 3))
    assert np.array_equal([data.sample(i) for i in range(10)], rows.reshape(10, 2, 3))
    assert ps.from_records(tmp_path / "a.bin", 24, header_bytes=4).sample(1) == rows[1].tobytes()
    with pytest.raises(ps.ConfigError, match=r"a\.bin"):
        ps.from_records(tmp_path / "a.bin", 24)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", ">i4", "uint64", "float16", ">f8",
                                   "S3", "U2"])
def test_arrays_of_numpy(tmp_path, dtype):
    array = np.arange(24).reshape(6, 4).astype(dtype)
    if dtype in ("S3", "U2"):
        array = array[:, 0]
    np.save(tmp_path / "a.npy", array[:4])
    np.save(tmp_path / "b.npy", array[4:])
    data = ps.from_npy([tmp_path / "a.npy", tmp_path / "b.npy"])
    assert [_plain(data.sample(i)) for i in range(6)] == array.tolist()


def test_arrays_of_an_npz_are_fields(tmp_path):
    x, y = np.random.default_rng(1).random((5, 3)), np.arange(5)
    np.savez(tmp_path / "plain.npz", x=x, y=y)
    np.savez_compressed(tmp_path / "packed.npz", x=x, y=y)
    for name in ("plain", "packed"):
        rows = rows_of(ps.from_npy(tmp_path / f"{name}.npz").shuffle(seed=1))
        assert sorted(row["y"] for row in rows) == list(range(5))
        assert all(row["x"] == x[row["y"]].tolist() for row in rows)
    np.savez(tmp_path / "objects.npz", x=np.array([{}, []], dtype=object))
    with pytest.raises(ps.ConfigError, match="objects"):
        ps.from_npy(tmp_path / "objects.npz")


@pytest.mark.parametrize("format", ["tfrecord", "tar"])
def test_written_records_are_read_again(tmp_path, format):
    png = ps.from_tensors({"image": np.zeros((4, 4, 3), np.uint8)}).map(
        ps.image.encode("png")).sample(0)["image"]
    data = ps.from_index(50, lambda i: {"image": png, "label": i % 5, "text": f"t{i}"})
    written = ps.write_records(data, tmp_path / "out", format, shards=3)
    assert (written.samples, len(written.files), written.found) == (50, 3, 0)
    again = ps.write_records(data, tmp_path / "out", format, shards=3)
    assert again.found == 3 and again.files == written.files
    if format == "tar":
        read = ps.from_tar(tmp_path / "out/*.tar", {"image": "png", "label": "cls", "text": "txt"})
    else:
        read = ps.from_tfrecord(tmp_path / "out/*.tfrecord",
                                {"image": "bytes", "label": "int64", "text": "str"})
    assert rows_of(read) == [{"image": png, "label": i % 5, "text": f"t{i}"} for i in range(50)]
    with pytest.raises(ps.ConfigError, match="other data, or of other options"):
        ps.write_records(data, tmp_path / "out", format, shards=4)


@pytest.mark.parametrize("format", ["tfrecord", "tar", "arrow"])
def test_writing_continues_where_it_was_interrupted(tmp_path, format):
    data = ps.range(1000)
    ps.write_records(data, tmp_path / "whole", format, shards=5)
    reached = []

    def stop(done, total):
        reached.append((done, total))
        if done > 600:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ps.write_records(data, tmp_path / "out", format, shards=5, progress=stop)
    assert reached[-1][1] == 1000
    assert len(list((tmp_path / "out").glob(f"*.{format}"))) == 3
    written = ps.write_records(data, tmp_path / "out", format, shards=5)
    assert (written.found, written.samples) == (3, 1000)
    for file in (tmp_path / "whole").iterdir():
        assert (tmp_path / "out" / file.name).read_bytes() == file.read_bytes(), file
    if format == "tfrecord":
        read = ps.from_tfrecord(tmp_path / "out/*.tfrecord", {"value": "int64"})
        assert [row["value"] for row in rows_of(read)] == list(range(1000))
    os.remove(written.files[1])
    assert ps.write_records(data, tmp_path / "out", format, shards=5).found == 1


def test_arrow_files_have_the_fields_of_the_whole_dataset(tmp_path):
    late = ps.from_index(1000, lambda i: {"x": np.zeros(3 if i == 7 else 2, np.float32)})
    with pytest.raises(ps.SampleError, match="sample 7 does not fit the columns"):
        ps.write_records(late, tmp_path / "late", "arrow", shards=1)
    declared = late.map(lambda sample: sample, spec={"x": ps.Field("float32", (None,))})
    written = ps.write_records(declared, tmp_path / "declared", "arrow", shards=4)
    (first, *_) = (open(file, "rb").read() for file in written.files)
    assert first[:8] == b"ARROW1\0\0" and first[-6:] == b"ARROW1"
    assert not list((tmp_path / "declared").glob(".*")), "an Arrow file contains its index"


@pytest.mark.parametrize(("call", "message"), [
    (lambda: ps.from_tfrecord("no such file"), "no file matches"),
    (lambda: ps.from_tfrecord([]), "no paths"),
    (lambda: ps.from_tfrecord(3), "is not a"),
    (lambda: ps.from_tfrecord(__file__, {"x": 3}), "is not a feature"),
    (lambda: ps.from_tfrecord(__file__, ["x"]), "is not a dict"),
    (lambda: ps.from_csv(__file__, delimiter=", "), "one ASCII letter"),
    (lambda: ps.from_text(__file__, compression="lzma"), "lzma"),
    (lambda: ps.from_text(__file__, progress=3), "is not a function"),
    (lambda: ps.from_records(__file__, 0), "record_bytes"),
    (lambda: ps.from_npy(__file__), "npy"),
    (lambda: ps.write_records(ps.range(3).batch(2), "out"), "batches"),
    (lambda: ps.write_records(ps.range(3).repeat(), "out"), "endless"),
])
def test_mistakes_are_explained(call, message):
    with pytest.raises(ps.ConfigError, match=message):
        call()
