"""One measurement in a process of its own: `workloads.py NAME FOLDER` prints a JSON object.

items_per_s counts from the first batch to the last one of an epoch, over items_per_s of the same
records everywhere. Peers have their documented fast settings and two threads or processes.
"""

import json
import pathlib
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from typing import Any

NAME, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
BATCH = 1024


def measure(batches: Iterable[Any], size_of: Callable[[Any], int]) -> dict[str, float]:
    """From the first batch on, so that start-up does not count."""
    iterator = iter(batches)
    next(iterator)
    items = 0
    began = time.perf_counter()
    for batch in iterator:
        items += size_of(batch)
    took = time.perf_counter() - began
    return {"items_per_s": items / took, "items": items}


# TFRecord files of 1 KB examples: {x: 1,000 bytes, y: an int64}

def tfrecord_penstock() -> dict[str, float]:
    import penstock as ps
    data = ps.from_tfrecord(FOLDER / "records/*.tfrecord",
                            {"x": ps.Feature("uint8", (1000,), raw=True), "y": "int64"})
    return measure(ps.Loader(data.shuffle(seed=1).batch(BATCH), threads=2), len)


def _tf() -> Any:
    import tensorflow as tf
    options = tf.data.Options()
    options.threading.private_threadpool_size = 2
    options.deterministic = False
    return tf, options


def _tf_feature(tf: Any) -> dict[str, Any]:
    return {"x": tf.io.FixedLenFeature([], tf.string), "y": tf.io.FixedLenFeature([], tf.int64)}


def tfrecord_tfdata_batched() -> dict[str, float]:
    tf, options = _tf()
    files = tf.data.TFRecordDataset(sorted(map(str, (FOLDER / "records").glob("*.tfrecord"))),
                                    buffer_size=8 << 20)

    def parse(records: Any) -> Any:
        parsed = tf.io.parse_example(records, _tf_feature(tf))
        return tf.io.decode_raw(parsed["x"], tf.uint8), parsed["y"]

    data = files.shuffle(10_000).batch(BATCH).map(parse, tf.data.AUTOTUNE)
    data = data.prefetch(tf.data.AUTOTUNE).with_options(options)
    return measure(data.as_numpy_iterator(), lambda batch: len(batch[1]))


def tfrecord_tfdata_per_record() -> dict[str, float]:
    tf, options = _tf()
    files = tf.data.TFRecordDataset(sorted(map(str, (FOLDER / "records").glob("*.tfrecord"))),
                                    buffer_size=8 << 20).take(100_000)

    def parse(record: Any) -> Any:
        parsed = tf.io.parse_single_example(record, _tf_feature(tf))
        return tf.io.decode_raw(parsed["x"], tf.uint8), parsed["y"]

    data = files.map(parse, tf.data.AUTOTUNE).shuffle(10_000).batch(BATCH)
    data = data.prefetch(tf.data.AUTOTUNE).with_options(options)
    return measure(data.as_numpy_iterator(), lambda batch: len(batch[1]))


# 16 TFRecord files, records as bytes

def interleave_penstock() -> dict[str, float]:
    import penstock as ps
    data = ps.from_tfrecord(FOLDER / "sixteen/*.tfrecord", raw=True)
    return measure(ps.Loader(data.shuffle(seed=1).batch(BATCH), threads=2), len)


def interleave_tfdata() -> dict[str, float]:
    tf, options = _tf()
    files = tf.data.Dataset.list_files(str(FOLDER / "sixteen/*.tfrecord"))
    data = files.interleave(tf.data.TFRecordDataset, cycle_length=16,
                            num_parallel_calls=tf.data.AUTOTUNE, deterministic=False)
    data = data.batch(BATCH).prefetch(tf.data.AUTOTUNE).with_options(options)
    return measure(data.as_numpy_iterator(), len)


# Images: PNGs of 100 x 100, resized to 64 x 64, flipped, brightness, batches of 64

def _images_of(data: Any) -> dict[str, float]:
    import penstock as ps
    chain = ps.image.decode().resize(64, 64).random_flip().random_brightness(0.2).to_float()
    return measure(ps.Loader(data.shuffle(seed=1).map(chain).batch(64), threads=2), len)


def images_penstock_tar() -> dict[str, float]:
    import penstock as ps
    return _images_of(ps.from_tar(FOLDER / "images-*.tar", {"image": "png", "label": "cls"}))


def images_penstock_folder() -> dict[str, float]:
    import penstock as ps
    return _images_of(ps.image_folder(FOLDER / "png"))


def images_webdataset() -> dict[str, float]:
    import io

    import numpy as np
    import torch
    import webdataset as wds
    from PIL import Image

    def load(data: bytes) -> Any:
        image = Image.open(io.BytesIO(data)).resize((64, 64), Image.BILINEAR)
        pixels = np.asarray(image, dtype=np.float32) / 255
        if torch.rand(()) < 0.5:
            pixels = pixels[:, ::-1]
        return (pixels + np.float32(torch.rand(()) * 0.4 - 0.2)).clip(0, 1)

    shards = sorted(map(str, FOLDER.glob("images-*.tar")))
    data = (wds.WebDataset(shards, shardshuffle=4, workersplitter=wds.split_by_worker)
            .shuffle(1000).to_tuple("png", "cls").map_tuple(load, int).batched(64))
    return measure(wds.WebLoader(data, batch_size=None, num_workers=2, prefetch_factor=4),
                   lambda batch: len(batch[1]))


# A numeric table: an id and ten floats

def csv_penstock() -> dict[str, float]:
    import penstock as ps
    data = ps.from_csv(FOLDER / "table.csv")
    return measure(ps.Loader(data.batch(4096), threads=2), len)


def csv_pyarrow() -> dict[str, float]:
    import pyarrow as pa
    from pyarrow import csv
    pa.set_cpu_count(2)
    return _table(lambda: csv.read_csv(FOLDER / "table.csv"))


def jsonl_penstock() -> dict[str, float]:
    import penstock as ps
    data = ps.from_jsonl(FOLDER / "table.jsonl")
    return measure(ps.Loader(data.batch(4096), threads=2), len)


def jsonl_pyarrow() -> dict[str, float]:
    import pyarrow as pa
    from pyarrow import json as arrow_json
    pa.set_cpu_count(2)
    return _table(lambda: arrow_json.read_json(FOLDER / "table.jsonl"))


def _table(read: Callable[[], Any]) -> dict[str, float]:
    """The whole file as a table, then batches of 4,096 rows as NumPy arrays."""
    began = time.perf_counter()
    table = read()
    rows = 0
    for batch in table.to_batches(max_chunksize=4096):
        for column in batch.columns:
            column.to_numpy(zero_copy_only=False)
        rows += batch.num_rows
    return {"items_per_s": rows / (time.perf_counter() - began), "items": rows}


# Finding records

def index_penstock() -> dict[str, float]:
    import penstock as ps
    path = next((FOLDER / "records").glob("*.tfrecord"))
    return _gigabytes(path, lambda: ps.from_tfrecord(path, raw=True, index="memory"))


def index_text_penstock() -> dict[str, float]:
    import penstock as ps
    path = FOLDER / "table.csv"
    return _gigabytes(path, lambda: ps.from_text(path, index="memory"))


def _gigabytes(path: pathlib.Path, build: Callable[[], Any]) -> dict[str, float]:
    path.read_bytes()
    began = time.perf_counter()
    build()
    took = time.perf_counter() - began
    return {"items_per_s": path.stat().st_size / took / 1e9, "items": path.stat().st_size}


# A cache on disk: decode, resize, cast, cache

def _cached(folder: str, random: bool) -> Any:
    import penstock as ps
    data = ps.image_folder(FOLDER / "png").map(ps.image.decode().resize(64, 64).to_float())
    data = data.cache(folder).shuffle(seed=1)
    if random:
        data = data.map(ps.image.of("image").random_flip().random_brightness(0.2))
    return ps.Loader(data.batch(64), threads=2)


def _epochs(loader: Any) -> tuple[dict[str, float], dict[str, float]]:
    first = measure(loader, len)
    measure(loader, len)
    return first, measure(loader, len)


def cache_epoch_2() -> dict[str, float]:
    folder = tempfile.mkdtemp(dir=FOLDER)
    try:
        first, later = _epochs(_cached(folder + "/cache", False))
        return {**later, "epoch_1": first["items_per_s"]}
    finally:
        shutil.rmtree(folder)


def cache_epoch_2_random() -> dict[str, float]:
    folder = tempfile.mkdtemp(dir=FOLDER)
    try:
        first, later = _epochs(_cached(folder + "/cache", True))
        return {**later, "epoch_1": first["items_per_s"]}
    finally:
        shutil.rmtree(folder)


def cache_gather() -> dict[str, float]:
    """The same rows in memory, gathered by the same engine's plainest source."""
    import numpy as np

    import penstock as ps
    rows = np.zeros((4000, 64, 64, 3), np.float32) + 0.5
    data = ps.from_tensor_slices({"image": rows, "label": np.zeros(4000, np.int64)})
    loader = ps.Loader(data.shuffle(seed=1).batch(64), threads=2)
    return _epochs(loader)[1]


def cache_numpy_gather() -> dict[str, float]:
    """The same rows in memory, gathered by NumPy, one thread."""
    import numpy as np
    rows = np.zeros((4000, 64, 64, 3), np.float32) + 0.5
    random = np.random.default_rng(1)

    def batches() -> Iterable[Any]:
        order = random.permutation(4000)
        for first in range(0, 4000, 64):
            yield rows[order[first:first + 64]]

    measure(batches(), len)
    return measure(batches(), len)


if __name__ == "__main__":
    print(json.dumps(globals()[NAME]()))
