"""Sequences: the Keras contract, for our base class and for any object that implements it."""

import numpy as np
import pytest
from conftest import steps_of

import penstock as ps


class Batches(ps.Sequence):
    def __init__(self, count=7, size=3):
        self.num_batches = count  # any attribute name is allowed
        self.size = size
        self.calls = []
        self.hooks = []

    def __len__(self):
        return self.num_batches

    def __getitem__(self, index):
        self.calls.append(index)
        return np.arange(index * self.size, (index + 1) * self.size)

    def on_epoch_begin(self):
        self.hooks.append("begin")

    def on_epoch_end(self):
        self.hooks.append("end")


def test_each_index_is_requested_once_per_pass_and_one_again_at_the_end():
    batches = Batches()
    loader = ps.Loader(ps.from_sequence(batches))
    assert len(loader) == 7
    for _ in range(2):
        assert steps_of(loader) == [[3 * i, 3 * i + 1, 3 * i + 2] for i in range(7)]
    assert sorted(batches.calls) == sorted(list(range(7)) * 2)
    assert batches.hooks == ["begin", "end", "begin"]
    del loader
    assert len(batches.calls) == 15
    assert batches.hooks == ["begin", "end", "begin", "end"]


def test_batches_are_cut_over_replicas():
    parts = [steps_of(ps.Loader(ps.from_sequence(Batches()), world=2, rank=rank))
             for rank in range(2)]
    assert [len(part) for part in parts] == [7, 7]
    assert [a + b for a, b in zip(*parts)] == [[3 * i, 3 * i + 1, 3 * i + 2] for i in range(7)]


def test_an_object_that_only_implements_the_protocol():
    class Duck:
        def __len__(self):
            return 2

        def __getitem__(self, index):
            return [np.full((2, 2), index, np.float32), np.array([index, index])]

    batches = list(ps.Loader(ps.from_sequence(Duck())))
    x, y = batches[1]
    assert x.tolist() == [[1, 1], [1, 1]] and y.tolist() == [1, 1]


def test_a_py_dataset_by_its_number_of_batches():
    class PyDataset:
        @property
        def num_batches(self):
            return 3

        def __getitem__(self, index):
            return {"x": np.array([index])}

    assert [b["x"].tolist() for b in ps.Loader(ps.from_sequence(PyDataset()))] == [[0], [1], [2]]


def test_the_users_exception_names_the_item():
    class Broken(Batches):
        def __getitem__(self, index):
            if index == 3:
                raise OSError("no such file")
            return super().__getitem__(index)

    loop = iter(ps.Loader(ps.from_sequence(Broken())))
    assert [next(loop).step for _ in range(3)] == [0, 1, 2]
    with pytest.raises(OSError, match="no such file") as raised:
        next(loop)
    assert "step 3" in raised.value.__notes__[0]


def test_another_batch_for_the_same_index_is_a_warning_or_an_error(capfd):
    class Popping(Batches):
        def __getitem__(self, index):
            self.size += 0
            self.calls.append(index)
            return np.array([len(self.calls)])

    list(ps.Loader(ps.from_sequence(Popping()), threads=0))
    assert "depend on the index alone" in capfd.readouterr().err
    list(ps.Loader(ps.from_sequence(Popping(), check=False), threads=0))
    assert capfd.readouterr().err == ""
    loader = ps.Loader(ps.from_sequence(Popping(), pure=True), threads=0)
    list(loader)
    with pytest.raises(ps.ConfigError, match="depend on the index alone"):
        loader.stop()


def test_objects_that_are_not_sequences():
    for bad, words in ((Batches, "is a class"), (iter([1]), "from_generator"), ({}, "batches by"),
                       (3, "__len__")):
        with pytest.raises(ps.ConfigError, match=words):
            ps.from_sequence(bad)
    with pytest.raises(ps.ConfigError, match="already batches"):
        ps.from_sequence(Batches()).batch(2)


def test_the_base_class_requires_both_methods():
    class Half(ps.Sequence):
        def __len__(self):
            return 1

    with pytest.raises(TypeError, match="__getitem__"):
        Half()
