"""ps.from_sequence accepts real keras.utils.PyDataset objects unchanged."""

import os

import numpy as np
import pytest

keras = pytest.importorskip("keras")

import penstock as ps  # noqa: E402


class Batches(keras.utils.PyDataset):
    """A user's PyDataset, with everything from the base class."""

    def __init__(self, make=None, count=7, **options):
        super().__init__(**options)
        self.make = make or (lambda i: (np.full((3, 2), i, "float32"), np.arange(3) + 3 * i))
        self.count = count
        self.calls, self.hooks = [], []

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        self.calls.append(index)
        return self.make(index)

    def on_epoch_begin(self):
        self.hooks.append("begin")

    def on_epoch_end(self):
        self.hooks.append("end")


@pytest.mark.parametrize("options", [{}, {"workers": 4, "max_queue_size": 2},
                                     {"workers": 2, "use_multiprocessing": True}])
def test_each_index_is_requested_once_for_any_number_of_workers(options):
    batches = Batches(**options)
    loader = ps.Loader(ps.from_sequence(batches))
    for _ in range(2):
        assert [batch[1].tolist() for batch in loader] == [
            [3 * i, 3 * i + 1, 3 * i + 2] for i in range(7)]
    assert sorted(batches.calls) == sorted([*range(7)] * 2)
    loader.stop()
    del loader
    assert batches.hooks == ["begin", "end"] * 2


@pytest.mark.parametrize("make, expected", [
    (lambda i: [np.ones((3, 2)), np.zeros(3)], tuple),
    (lambda i: ({"a": np.ones((3, 2)), "b": np.ones(3)}, np.zeros(3)), tuple),
    (lambda i: (np.ones((3, 2)), np.zeros(3), np.ones(3)), tuple),
    (lambda i: {"a": np.ones((3, 2))}, dict),
    (lambda i: np.ones((3, 2)), np.ndarray),
    (lambda i: (keras.ops.ones((3, 2)), keras.ops.zeros((3,))), tuple),
])
def test_returned_batches_are_used_unchanged(make, expected):
    batch = next(iter(ps.Loader(ps.from_sequence(Batches(make)))))
    assert isinstance(batch.numpy(), expected) and len(batch) == 3


def test_batches_of_other_sizes_are_cut_over_ranks():
    sizes = [4, 4, 3, 1]
    batches = Batches(lambda i: np.arange(sizes[i]) + 10 * i, count=4)
    shares = [[batch.numpy().tolist() for batch in ps.Loader(ps.from_sequence(batches), world=2,
                                                            rank=rank)] for rank in range(2)]
    assert [len(a) + len(b) for a, b in zip(*shares)] == sizes


class Counted(keras.utils.PyDataset):
    """One with num_batches as a property."""

    batches = 3

    @property
    def num_batches(self):
        return self.batches

    def __getitem__(self, index):
        return np.array([index])


def test_the_number_of_batches_may_be_a_property():
    assert len(ps.Loader(ps.from_sequence(Counted()))) == 3


def test_sequences_without_a_length_are_rejected():
    endless = Counted()
    endless.batches = None
    with pytest.raises(ps.ConfigError, match="Counted is endless.*from_generator"):
        ps.from_sequence(endless)

    class Silent(keras.utils.PyDataset):
        def __getitem__(self, index):
            return np.zeros(3)

    with pytest.raises(ps.ConfigError, match="does not say how many.*__len__"):
        ps.from_sequence(Silent())


def test_tf_keras_sequences_are_the_same_class():
    if os.environ.get("KERAS_BACKEND", "tensorflow") != "tensorflow":
        pytest.skip("tf.keras comes with TensorFlow")
    tf = pytest.importorskip("tensorflow")

    class Old(tf.keras.utils.Sequence):
        def __len__(self):
            return 2

        def __getitem__(self, index):
            return tf.fill((3, 2), index), tf.range(3)

    assert [batch[0][0, 0] for batch in ps.Loader(ps.from_sequence(Old()))] == [0, 1]


def test_one_goes_through_the_engine_into_fit():
    class Ones(Batches):
        def __getitem__(self, index):
            return np.ones((3, 1), "float32"), np.ones((3, 1), "float32")

    model = keras.Sequential([keras.Input((1,)),
                              keras.layers.Dense(1, kernel_initializer="zeros")])
    model.compile(keras.optimizers.SGD(0.0), loss="mse")
    data = ps.keras.dataset(ps.Loader(ps.from_sequence(Ones())))
    assert model.fit(data, epochs=2, shuffle=False, verbose=0).history["loss"] == [1.0, 1.0]
