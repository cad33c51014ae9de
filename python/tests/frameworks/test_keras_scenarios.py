"""The rows of docs/scenarios.md that are a fit, under the real Keras, on every backend.

Names start with those of the rows. Rows that need several replicas are in test_keras_replicas.py.
"""

import numpy as np
import pytest

keras = pytest.importorskip("keras")

from article import png  # noqa: E402
from keras_programs import (  # noqa: E402
    keras_data,
    linear,
    planned,
    samples,
    trained_by_hand,
    weights_of,
)

import penstock as ps  # noqa: E402


def ones_model(optimizer=None, **options):
    """All labels are 1 and all weights 0: every sample's loss is 1 while nothing is learned."""
    model = keras.Sequential([keras.Input((2,)),
                              keras.layers.Dense(1, kernel_initializer="zeros")])
    model.compile(optimizer or keras.optimizers.SGD(0.0), loss="mse", **options)
    return model


def ones(count):
    return np.ones((count, 2), "float32"), np.ones((count, 1), "float32")


def stream(batches, size=16, seen=None):
    """A generator of rows; its length is unknown until it ends."""
    def rows():
        for number in range(batches * size):
            if seen is not None and number % size == 0:
                seen.append(number // size)
            yield np.ones(2, "float32"), np.ones(1, "float32")
    return ps.from_generator(rows, spec=(ps.Field("float32", (2,)), ps.Field("float32", (1,))))


class Steps(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.epochs = []

    def on_epoch_begin(self, epoch, logs=None):
        self.epochs.append(0)

    def on_train_batch_end(self, batch, logs=None):
        self.epochs[-1] += 1


def test_a000_zero_padding():
    """Policy pad: the empty rows have weight zero, and loss 1.0 is logged as 1.0."""
    exact = ps.keras.ExactLoss("mse")
    data = ps.keras.dataset(ps.Loader(ps.from_tensor_slices(ones(21)).batch(4), tail="pad"))
    model = ones_model(weighted_metrics=[exact.metric])
    assert model.fit(data, epochs=2, shuffle=False, verbose=0,
                     callbacks=[exact]).history["loss"] == [1.0, 1.0]
    assert model.evaluate(data, verbose=0, return_dict=True)["data_loss"] == 1.0
    assert data.loader.plan.tail_cost["padded"] == 3


def test_a001_finite_generator():
    steps = Steps()
    data = ps.keras.dataset(ps.Loader(stream(7).batch(16)))  # no number of steps is given
    history = ps.keras.fit(ones_model(), data, epochs=3, verbose=0, callbacks=[steps]).history
    assert steps.epochs == [7, 7, 7] and history["loss"] == [1.0, 1.0, 1.0]


def test_a001_repeat_steps():
    """30 steps of 16 are 4 rounds of 103 samples and 68 of the fifth: the weights tell which."""
    ds = ps.from_tensor_slices(samples()).repeat().batch(16)
    data = ps.keras.dataset(ps.Loader(ds), x="x", y="y", steps_per_epoch=10)
    steps, model = Steps(), linear()
    model.fit(data, epochs=3, shuffle=False, verbose=0, callbacks=[steps])
    assert steps.epochs == [10, 10, 10]
    numbers = [i % 103 for i in range(30 * 16)]
    by_hand = trained_by_hand([numbers[at:at + 16] for at in range(0, 30 * 16, 16)])[0]
    np.testing.assert_allclose(weights_of(model), by_hand, rtol=1e-4, atol=1e-5)


def test_a001_take():
    ds = ps.from_tensor_slices(ones(100)).batch(16).take(5)
    steps = Steps()
    ones_model().fit(ps.keras.dataset(ps.Loader(ds)), shuffle=False, verbose=0, callbacks=[steps])
    assert steps.epochs == [5]


@pytest.mark.parametrize("optimizer", ["Adam", "AdamW"])
def test_b_ghost_step(optimizer):
    """The end of a stream adds no step: the same weights as data of known length."""
    def trained(dataset, **options):
        model = ones_model(getattr(keras.optimizers, optimizer)(0.01))
        data = ps.keras.dataset(ps.Loader(dataset.batch(16)), **options)
        history = ps.keras.fit(model, data, epochs=3, verbose=0).history
        return weights_of(model), history["loss"], int(model.optimizer.iterations)

    known = trained(ps.from_tensor_slices(ones(112)))
    streamed = trained(stream(7))
    assert (known[0] == streamed[0]).all() and known[1] == streamed[1]
    assert known[2] == streamed[2] == 21
    still = ones_model()
    data = ps.keras.dataset(ps.Loader(stream(7).batch(16)))
    assert still.fit(data, shuffle=False, verbose=0).history["loss"] == [1.0]
    assert still.evaluate(data, verbose=0) == 1.0


def test_b_short_generator():
    data = ps.keras.dataset(ps.Loader(stream(7).batch(16)), steps_per_epoch=10)
    with pytest.raises(ps.ConfigError, match="ended after 7 steps.*is 10 -> repeat"):
        ps.keras.fit(ones_model(), data, verbose=0)
    data = ps.keras.dataset(ps.Loader(stream(7).repeat().batch(16)), steps_per_epoch=10)
    steps = Steps()
    ps.keras.fit(ones_model(), data, epochs=3, verbose=0, callbacks=[steps])
    assert steps.epochs == [10, 10, 10]


def test_b_steps_below_pass():
    steps = Steps()
    model = linear()
    ps.keras.fit(model, keras_data(steps_per_epoch=5), epochs=3, verbose=0, callbacks=[steps])
    assert steps.epochs == [5, 5, 5]
    np.testing.assert_allclose(weights_of(model), trained_by_hand(sum(planned(3), [])[:15])[0],
                               rtol=1e-4, atol=1e-5)


def test_b_peek():
    """12 batches of a generator in epochs of 4: all of them, in order, and then from its start."""
    seen, trained = [], []
    data = ps.keras.dataset(ps.Loader(stream(12, seen=seen).batch(16), threads=0),
                            steps_per_epoch=4)
    walk = data._walk.batch

    def note(number, step, *looking):
        batch = walk(number, step, *looking)
        if batch is not None and (number, step) not in trained:
            trained.append((number, step))
        return batch

    data._walk.batch = note
    steps = Steps()
    ps.keras.fit(ones_model(), data, epochs=4, verbose=0, callbacks=[steps])
    assert steps.epochs == [4, 4, 4, 4]
    assert trained == [(0, step) for step in range(12)] + [(1, step) for step in range(4)]
    assert seen[:12] == list(range(12))  # no batch was pulled out of order


def test_b_validation():
    model = ones_model()
    history = model.fit(ps.keras.dataset(ps.Loader(ps.from_tensor_slices(ones(64)).batch(16))),
                        validation_data=ps.keras.dataset(
                            ps.Loader(ps.from_tensor_slices(ones(19)).batch(4))),
                        epochs=3, shuffle=False, verbose=0).history
    assert history["val_loss"] == [1.0, 1.0, 1.0]


class Items(keras.utils.PyDataset):
    def __init__(self, make):
        super().__init__()
        self.make = make

    def __len__(self):
        return 7

    def __getitem__(self, index):
        return self.make(index)


def test_d_getitem_raises():
    def make(index):
        if index == 3:
            raise OSError("no such file")
        return ones(4)

    steps = Steps()
    data = ps.keras.dataset(ps.Loader(ps.from_sequence(Items(make))))
    with pytest.raises(OSError, match="no such file") as raised:
        ps.keras.fit(ones_model(), data, verbose=0, callbacks=[steps])
    assert "step 3" in raised.value.__notes__[0]


def test_d_ragged_last():
    data = ps.keras.dataset(ps.Loader(ps.from_sequence(Items(
        lambda index: ones(4 if index < 6 else 1)))))
    model = linear_of_two()
    model.fit(data, shuffle=False, verbose=0)
    weights, bias = np.zeros(2), 0.0
    for _ in range(7):  # samples are equal: one moves the weights as far as four
        error = weights.sum() + bias - 1
        weights, bias = weights - 0.05 * 2 * error, bias - 0.05 * 2 * error
    np.testing.assert_allclose(weights_of(model), [*weights, bias], rtol=1e-5)


def linear_of_two():
    return ones_model(keras.optimizers.SGD(0.05))


def test_d_other_width():
    def make(index):
        return np.ones((4, 2 if index < 6 else 3), "float32"), np.ones((4, 1), "float32")

    data = ps.keras.dataset(ps.Loader(ps.from_sequence(Items(make))))
    steps = Steps()
    with pytest.raises(ps.SampleError, match=r"get\(6\).*f32\[3\].*f32\[2\]"):
        ps.keras.fit(ones_model(), data, verbose=0, callbacks=[steps])
    assert steps.epochs in ([6], [5])  # the steps before it were trained; Keras reads ahead


def test_d_resume_fit(tmp_path):
    """Stopped at epoch 2, step 3 of 5: resumes at step 4, and no sample is repeated."""
    class Stop(keras.callbacks.Callback):
        def __init__(self):
            super().__init__()
            self.steps = 0

        def on_train_batch_begin(self, batch, logs=None):
            self.steps += 1
            if self.steps == 9:
                raise KeyboardInterrupt

    visits = []

    def program(*callbacks):
        def note(sample):
            visits.append(int(sample["id"]))
            return sample["x"], sample["y"]

        arrays = {"x": ones(40)[0], "y": ones(40)[1], "id": np.arange(40)}
        ds = ps.from_tensor_slices(arrays).shuffle(seed=7).map(note).batch(8)
        data = ps.keras.dataset(ps.Loader(ds, threads=0))
        resume = ps.keras.Resume(data, tmp_path, every=1)
        model = ones_model(keras.optimizers.Adam(0.01))
        ps.keras.fit(model, data, epochs=2, resume=resume, verbose=0, callbacks=list(callbacks))
        return model

    with pytest.raises(KeyboardInterrupt):
        program(Stop())
    assert not (tmp_path / "state.json").read_text().count('"step": 0')
    visits.clear()
    model = program()
    assert int(model.optimizer.iterations) == 10
    assert len(visits) == len(set(visits)) == 16


def folder_of_pngs(root, count=20):
    """Dark and bright images of 100 x 100."""
    for label, level in (("bright", 200), ("dark", 40)):
        (root / label).mkdir(parents=True)
        for number in range(count // 2):
            draw = np.random.default_rng(number)
            png(root / label / f"{number}.png",
                (level + draw.integers(0, 30, (100, 100, 3))).astype(np.uint8))
    return root


def small_classifier():
    model = keras.Sequential([keras.Input((64, 64, 3)), keras.layers.AveragePooling2D(16),
                              keras.layers.Flatten(),
                              keras.layers.Dense(2, kernel_initializer="zeros")])
    model.compile(keras.optimizers.Adam(0.1),
                  loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


def test_a003_full_pipeline(tmp_path):
    """PNG 100 x 100 to 64 x 64, flipped, brightened, in float batches, to a model that learned."""
    chain = ps.image.decode().resize(64, 64).random_flip().random_brightness(0.2).to_float()
    ds = ps.image_folder(folder_of_pngs(tmp_path)).shuffle(seed=7).map(chain).batch(8)
    model = small_classifier()
    data = ps.keras.dataset(ps.Loader(ds), x="image", y="label")
    history = ps.keras.fit(model, data, epochs=12, verbose=0).history["loss"]
    assert history[-1] < 0.5 * history[0]
    plain = ps.image_folder(tmp_path).map(ps.image.decode().resize(64, 64).to_float()).batch(8)
    guesses = model.predict(ps.keras.dataset(ps.Loader(plain), x="image"), verbose=0)
    assert guesses.argmax(axis=1).tolist() == [0] * 10 + [1] * 10


def test_d_corrupt_png(tmp_path):
    folder_of_pngs(tmp_path)
    (tmp_path / "dark" / "3.png").write_bytes(b"\x89PNG\r\n\x1a\nnot one")
    ds = ps.image_folder(tmp_path).map(ps.image.decode().resize(64, 64).to_float()).batch(8)
    with pytest.raises(ps.Error, match=r"3\.png"):
        ps.keras.fit(small_classifier(), ps.keras.dataset(ps.Loader(ds), x="image", y="label"),
                     verbose=0)
    skipping = ps.Loader(ds, on_error="skip")
    steps = Steps()
    ps.keras.fit(small_classifier(), ps.keras.dataset(skipping, x="image", y="label"), verbose=0,
                 callbacks=[steps])
    assert steps.epochs == [3] and skipping.ledger.count == 1


def test_a003_inner_iterator():
    """The correct version: a generator around the iterator, without indices."""
    pulled = []

    def rows():
        for number in range(28):
            pulled.append(number)
            yield np.ones(2, "float32"), np.ones(1, "float32")

    data = ps.keras.dataset(ps.Loader(ps.from_generator(rows).batch(4), threads=0))
    ps.keras.fit(ones_model(), data, epochs=2, verbose=0)
    assert sorted(pulled) == sorted([*range(28)] * 2)
