"""The readers and writers of tf.data beside ours: the same files, elements and order."""

import gzip

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")
import penstock as ps  # noqa: E402

ROWS = 200


@pytest.fixture
def records(tmp_path):
    """Examples that TensorFlow wrote: two plain files."""
    random = np.random.default_rng(1)
    for part in range(2):
        with tf.io.TFRecordWriter(str(tmp_path / f"{part}.tfrecord")) as writer:
            for i in range(ROWS // 2):
                features = {
                    "id": tf.train.Feature(int64_list=tf.train.Int64List(value=[i - 50])),
                    "x": tf.train.Feature(float_list=tf.train.FloatList(value=random.random(3))),
                    "name": tf.train.Feature(
                        bytes_list=tf.train.BytesList(value=[f"row {i}".encode()])),
                    "tags": tf.train.Feature(
                        int64_list=tf.train.Int64List(value=list(range(i % 4)))),
                }
                if i % 3 == 0:
                    features["w"] = tf.train.Feature(
                        float_list=tf.train.FloatList(value=[0.5]))
                writer.write(tf.train.Example(features=tf.train.Features(
                    feature=features)).SerializeToString())
    return tmp_path


def files(folder):
    return [str(folder / "0.tfrecord"), str(folder / "1.tfrecord")]


def test_raw_records_are_those_of_tfrecorddataset(records):
    theirs = list(tf.data.TFRecordDataset(files(records)).as_numpy_iterator())
    ours = list(ps.from_tfrecord(files(records), raw=True))
    assert ours == theirs


def test_parsed_examples_are_those_of_parse_single_example(records):
    spec = {"id": tf.io.FixedLenFeature([], tf.int64), "x": tf.io.FixedLenFeature([3], tf.float32),
            "name": tf.io.FixedLenFeature([], tf.string),
            "w": tf.io.FixedLenFeature([], tf.float32, -1.0), "tags": tf.io.VarLenFeature(tf.int64)}
    theirs = tf.data.TFRecordDataset(files(records)).map(
        lambda record: tf.io.parse_single_example(record, spec))
    count = 0
    for mine, other in zip(ps.from_tfrecord(files(records), spec), theirs, strict=True):
        assert mine["id"] == other["id"].numpy() and mine["name"] == other["name"].numpy()
        assert np.array_equal(mine["x"], other["x"].numpy()) and mine["w"] == other["w"].numpy()
        assert np.array_equal(mine["tags"], tf.sparse.to_dense(other["tags"]).numpy())
        count += 1
    assert count == ROWS


@pytest.mark.parametrize("kind", ["GZIP", "ZLIB"])
def test_compressed_records_are_the_same(records, kind):
    plain = list(tf.data.TFRecordDataset(files(records)).as_numpy_iterator())
    path = str(records / "packed")
    with tf.io.TFRecordWriter(path, kind) as writer:
        for record in plain:
            writer.write(record)
    named = kind.lower() if kind == "ZLIB" else "auto"
    assert list(ps.from_tfrecord(path, raw=True, compression=named)) == plain
    assert list(tf.data.TFRecordDataset(path, kind).as_numpy_iterator()) == plain


def test_sequence_examples_are_those_of_parse_single_sequence_example(tmp_path):
    def ints(values):
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))

    with tf.io.TFRecordWriter(str(tmp_path / "a")) as writer:
        for i in range(20):
            writer.write(tf.train.SequenceExample(
                context=tf.train.Features(feature={"id": ints([i])}),
                feature_lists=tf.train.FeatureLists(feature_list={
                    "steps": tf.train.FeatureList(feature=[ints([i, j]) for j in range(i % 5)])}),
            ).SerializeToString())
    ours = ps.from_tfrecord(tmp_path / "a",
                            {"id": "int64", "steps": ps.Feature("int64", (2,), sequence=True)})
    for mine, record in zip(ours, tf.data.TFRecordDataset(str(tmp_path / "a")), strict=True):
        context, lists = tf.io.parse_single_sequence_example(
            record, {"id": tf.io.FixedLenFeature([], tf.int64)},
            {"steps": tf.io.FixedLenSequenceFeature([2], tf.int64)})
        assert mine["id"] == context["id"].numpy()
        assert np.array_equal(mine["steps"], lists["steps"].numpy())


def test_decode_raw_gives_the_same_arrays(tmp_path):
    images = np.random.default_rng(1).integers(0, 256, (10, 4, 5), dtype=np.uint8)
    with tf.io.TFRecordWriter(str(tmp_path / "a")) as writer:
        for image in images:
            feature = tf.train.Feature(bytes_list=tf.train.BytesList(value=[image.tobytes()]))
            writer.write(tf.train.Example(features=tf.train.Features(
                feature={"image": feature})).SerializeToString())
    ours = ps.from_tfrecord(tmp_path / "a", {"image": ps.Feature("uint8", (4, 5), raw=True)})
    assert np.array_equal(np.stack([row["image"] for row in ours]), images)


def test_lines_are_those_of_textlinedataset(tmp_path):
    texts = ["one\ntwo\r\n\nthree", "four\n", "", "five \tsix\n\n"]
    paths = []
    for i, text in enumerate(texts):
        paths.append(str(tmp_path / f"{i}.txt"))
        with open(paths[-1], "w", newline="", encoding="utf-8") as out:
            out.write(text)
    theirs = [line.decode() for line in tf.data.TextLineDataset(paths).as_numpy_iterator()]
    assert list(ps.from_text(paths)) == theirs
    packed = str(tmp_path / "a.gz")
    with gzip.open(packed, "wb") as out:
        out.write("a\nb\n".encode())
    assert list(ps.from_text(packed)) == [
        line.decode() for line in tf.data.TextLineDataset(packed, "GZIP").as_numpy_iterator()]


def test_records_are_those_of_fixedlengthrecorddataset(tmp_path):
    (tmp_path / "a").write_bytes(b"HEAD" + bytes(range(60)) + b"TAIL!")
    theirs = tf.data.FixedLengthRecordDataset(str(tmp_path / "a"), 6, 4, 5)
    ours = ps.from_records(tmp_path / "a", 6, header_bytes=4, footer_bytes=5)
    assert list(ours) == list(theirs.as_numpy_iterator())


def test_rows_are_those_of_csvdataset(tmp_path):
    path = str(tmp_path / "a.csv")
    with open(path, "w", newline="", encoding="utf-8") as out:
        out.write('i,f,s\n1,0.5,plain\n-2,,"with ""quotes"", and\nlines"\n3,1e-3,\n')
    theirs = tf.data.experimental.CsvDataset(
        path, [tf.int64, tf.constant([-1.0], tf.float32), tf.constant([""])], header=True)
    ours = ps.from_csv(path, nulls={"f": -1.0}, types={"f": "float32"})
    for mine, (i, f, s) in zip(ours, theirs, strict=True):
        assert mine["i"] == i.numpy() and mine["f"] == f.numpy()
        assert mine["s"] == s.numpy().decode()


def test_what_we_write_tensorflow_reads(tmp_path):
    rows = [{"id": i, "x": np.float32([i, 0.25]), "name": f"n{i}", "raw": bytes([i, 255])}
            for i in range(50)]
    ps.write_records(ps.from_index(50, lambda i: rows[i]), tmp_path / "out", shards=3)
    spec = {"id": tf.io.FixedLenFeature([], tf.int64), "x": tf.io.FixedLenFeature([2], tf.float32),
            "name": tf.io.FixedLenFeature([], tf.string),
            "raw": tf.io.FixedLenFeature([], tf.string)}
    paths = sorted(map(str, (tmp_path / "out").glob("*.tfrecord")))
    read = list(tf.data.TFRecordDataset(paths).map(
        lambda record: tf.io.parse_single_example(record, spec)).as_numpy_iterator())
    assert len(read) == 50
    for row, theirs in zip(rows, read, strict=True):
        assert theirs["id"] == row["id"] and np.array_equal(theirs["x"], row["x"])
        assert theirs["name"] == row["name"].encode() and theirs["raw"] == row["raw"]


def test_save_load_cache_and_snapshot_give_what_tensorflow_gives(tmp_path):
    values = np.arange(40, dtype=np.int64).reshape(20, 2)
    theirs = tf.data.Dataset.from_tensor_slices(values).map(lambda x: x * 3)
    theirs.save(str(tmp_path / "theirs"))
    loaded = [row.tolist() for row in
              tf.data.Dataset.load(str(tmp_path / "theirs")).as_numpy_iterator()]
    ours = ps.from_tensor_slices(values).map(lambda x: x * 3, name="thrice")
    ours.save(tmp_path / "ours")
    assert [row.tolist() for row in ps.load(tmp_path / "ours")] == loaded
    for verb in ("cache", "snapshot"):
        mine = getattr(ours, verb)(tmp_path / verb)
        other = getattr(theirs, verb)(str(tmp_path / f"their-{verb}"))
        for _ in range(2):
            assert ([row.tolist() for row in mine]
                    == [row.tolist() for row in other.as_numpy_iterator()])
