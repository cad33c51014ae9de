"""Iterating over single elements of any size: `for x in dataset`."""

import numpy as np
import pytest
from article import png

import penstock as ps


def rising(count=5):
    return [np.arange(i + 1) for i in range(count)]


@pytest.mark.parametrize("dataset", [
    lambda: ps.from_generator(lambda: iter(rising())),
    lambda: ps.from_index(5, lambda i: rising()[i]),
    lambda: ps.range(5).map(lambda i: np.arange(i + 1)),
    lambda: ps.range(5).map(lambda i: np.arange(i + 1), spec=ps.Field("int64", (None,))),
])
def test_elements_of_different_lengths_are_yielded_one_by_one(dataset):
    ds = dataset()
    for _ in range(2):
        assert [x.tolist() for x in ds] == [x.tolist() for x in rising()]


def test_structures_and_types_are_those_of_a_sample():
    def make(i):
        return {"x": np.zeros((i, 2), np.float32), "pair": (i, "text" * i), "raw": b"\0" * i}

    ds = ps.from_index(3, make)
    for number, seen in enumerate(ds):
        alone = ds.sample(number)
        assert seen["x"].shape == (number, 2) and seen["x"].dtype == np.float32
        assert type(seen["pair"]) is tuple and seen["pair"] == alone["pair"]
        assert type(seen["pair"][0]) is type(alone["pair"][0]) is np.int64
        assert seen["raw"] == b"\0" * number
    assert list(ps.from_index(2, lambda i: (i,))) == [(0,), (1,)]


def test_a_shuffle_has_another_order_each_time():
    ds = ps.from_index(30, lambda i: np.arange(i + 1)).shuffle(seed=1)
    first, second = ([len(x) for x in ds] for _ in range(2))
    assert first != second and sorted(first) == sorted(second) == list(range(1, 31))


def test_images_of_different_sizes_are_decoded_one_by_one(tmp_path):
    for i in range(3):
        png(tmp_path / f"{i}.png", np.full((4 + i, 9 - i, 3), i, np.uint8))
    ds = ps.image_folder(tmp_path, labels=False).map(ps.image.decode())
    assert [x["image"].shape for x in ds] == [(4, 9, 3), (5, 8, 3), (6, 7, 3)]


@pytest.mark.parametrize("dataset", [
    lambda: ps.from_generator(lambda: iter(rising())),
    lambda: ps.from_index(5, lambda i: rising()[i]),
    lambda: ps.range(5).map(lambda i: np.arange(i + 1)),
    lambda: ps.range(5).map(lambda i: np.arange(i + 1), spec=ps.Field("int64", (None,))),
])
@pytest.mark.parametrize("size", [1, 2, 5])
def test_a_batch_of_different_sizes_has_its_rows(dataset, size):
    rows = [row.tolist() for batch in ps.Loader(dataset().batch(size)) for row in batch.numpy()]
    assert rows == [x.tolist() for x in rising()]
