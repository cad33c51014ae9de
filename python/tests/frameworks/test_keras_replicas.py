"""ps.keras under tf.distribute.MirroredStrategy: the articles' fits, for every R."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")
if os.environ.get("KERAS_BACKEND", "tensorflow") != "tensorflow":
    pytest.skip("tf.distribute needs the TensorFlow backend", allow_module_level=True)

import keras  # noqa: E402
from keras_programs import (  # noqa: E402
    LEARNING_RATE,
    keras_data,
    linear,
    planned,
    samples,
    trained_by_hand,
    weights_of,
)

import penstock as ps  # noqa: E402

CLOSE = {"rtol": 1e-4, "atol": 1e-5}
DEVICES = 8
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * DEVICES)


def strategy_of(replicas):
    # TensorFlow's default ring is bound to one number of replicas for the life of a process.
    return tf.distribute.MirroredStrategy(
        [f"CPU:{each}" for each in range(replicas)],
        cross_device_ops=tf.distribute.ReductionToOneDevice())


def under(strategy, **options):
    with strategy.scope():
        return linear(keras.optimizers.SGD(LEARNING_RATE), **options)


@pytest.mark.parametrize("replicas", [1, 2, 3, 4, 8])
def test_b_103_by_16_trains_as_on_one_device(replicas):
    strategy = strategy_of(replicas)
    data = keras_data().to_tf(strategy)
    exact = ps.keras.ExactLoss("mse")
    with strategy.scope():
        model = linear(weighted_metrics=[exact.metric])
    history = ps.keras.fit(model, data, epochs=2, verbose=0, callbacks=[exact]).history
    passes = planned(2)
    np.testing.assert_allclose(weights_of(model), trained_by_hand(passes[0] + passes[1])[0],
                               **CLOSE)
    np.testing.assert_allclose(history["loss"][0], trained_by_hand(passes[0])[1], **CLOSE)
    assert int(model.optimizer.iterations.numpy()) == 14


def test_b_103_by_16_crashes_without():
    """Plain Keras cannot start if 3 replicas do not divide the batch."""
    arrays = samples()
    with pytest.raises(Exception, match="must have the same size and shape"):
        under(strategy_of(3)).fit(arrays["x"], arrays["y"], batch_size=16, verbose=0)


@pytest.mark.parametrize("replicas", [2, 4])
def test_b_tail_of_one(replicas):
    """97 samples: the last step has one, with the weight it would have on one device."""
    strategy = strategy_of(replicas)
    data = keras_data(97).to_tf(strategy)
    model = under(strategy)
    model.fit(data, shuffle=False, verbose=0)
    np.testing.assert_allclose(weights_of(model), trained_by_hand(planned(1, 97)[0])[0], **CLOSE)


def test_rows_are_dealt_evenly_and_padding_weighs_nothing():
    data = keras_data().to_tf(strategy_of(3))
    x, y, weight = data[0]
    assert x.shape == (18, 4) and y.shape == (18, 1)
    assert [int((part != 0).sum()) for part in np.split(weight, 3)] == [6, 5, 5]
    assert weight.sum() == pytest.approx(18)
    x, y, weight = data[6]
    assert x.shape == (18, 4)
    assert [int((part != 0).sum()) for part in np.split(weight, 3)] == [3, 2, 2]
    rows = np.concatenate([x[i * 6:i * 6 + n] for i, n in enumerate((3, 2, 2))])
    assert (rows == samples()["x"][planned(1)[0][6]]).all()


@pytest.mark.parametrize("replicas", [2, 3])
def test_a_users_weights_multiply_and_logs_stay_exact(replicas):
    arrays = {**samples(), "w": ((np.arange(103) * 7) % 5 / 2).astype("float32")}
    ds = ps.from_tensor_slices(arrays).shuffle(seed=7).batch(16)
    strategy = strategy_of(replicas)
    data = ps.keras.dataset(ps.Loader(ds), x="x", y="y", sample_weight="w").to_tf(strategy)
    with strategy.scope():
        exact = ps.keras.ExactLoss("mse")
        model = linear(weighted_metrics=[exact.metric, ps.keras.metric("mse")])
    history = model.fit(data, shuffle=False, verbose=0, callbacks=[exact]).history
    weights, loss = trained_by_hand(planned(1)[0], lambda ids: arrays["w"][ids].astype(float))
    np.testing.assert_allclose(weights_of(model), weights, **CLOSE)
    np.testing.assert_allclose(history["loss"], [loss], **CLOSE)
    np.testing.assert_allclose(history["mean_squared_error"], [loss], **CLOSE)


def test_predictions_come_back_in_order_without_padding():
    strategy = strategy_of(3)
    data = keras_data().to_tf(strategy)
    model = under(strategy)
    model.layers[-1].set_weights([np.ones((4, 1), "float32"), np.zeros(1, "float32")])
    rows = data.unpad(model.predict(data, verbose=0))
    order = np.concatenate(planned(1)[0])
    np.testing.assert_allclose(rows, samples()["x"][order].sum(axis=1, keepdims=True), **CLOSE)


def test_other_objects_than_strategies_raise():
    with pytest.raises(ps.ConfigError, match="tf.distribute strategy"):
        keras_data().to_tf("mirrored")


def test_d_resume_fit_resumes_with_other_replicas(tmp_path):
    class Stop(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            if batch == 3:
                raise KeyboardInterrupt

    def program(replicas, *callbacks):
        strategy = strategy_of(replicas)
        with strategy.scope():
            model = linear(keras.optimizers.Adam(0.1))
        data = keras_data().to_tf(strategy)
        resume = ps.keras.Resume(data, tmp_path, every=1)
        ps.keras.fit(model, data, epochs=2, resume=resume, verbose=0, callbacks=list(callbacks))
        return weights_of(model)

    with pytest.raises(KeyboardInterrupt):
        program(2, Stop())
    model = linear(keras.optimizers.Adam(0.1))
    ps.keras.fit(model, keras_data(), epochs=2, verbose=0)
    np.testing.assert_allclose(program(3), weights_of(model), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("replicas", [2, 3])
def test_a001_batch_100_by_16_with_tensorflows_own_collectives(replicas):
    """In a separate process, like a user's program."""
    program = f"""
        import numpy as np, tensorflow as tf
        tf.config.set_logical_device_configuration(
            tf.config.list_physical_devices("CPU")[0],
            [tf.config.LogicalDeviceConfiguration()] * {replicas})
        import keras
        import penstock as ps

        x = np.ones((100, 1), "float32")
        data = ps.keras.dataset(ps.Loader(ps.from_tensor_slices((x, x)).shuffle().batch(16)))
        strategy = tf.distribute.MirroredStrategy(
            [f"CPU:{{each}}" for each in range({replicas})])
        with strategy.scope():
            model = keras.Sequential([keras.Input((1,)),
                                      keras.layers.Dense(1, kernel_initializer="zeros")])
            model.compile("sgd", loss="mse")
        print(model.fit(data.to_tf(strategy), verbose=0, shuffle=False).history["loss"][0])
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=False,
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    expected, weight, bias = 0.0, 0.0, 0.0
    for count in [16] * 6 + [4]:  # samples are equal: 4 move the weights as far as 16 do
        error = weight + bias - 1
        expected += error**2 / 7
        weight, bias = weight - 0.01 * 2 * error, bias - 0.01 * 2 * error
    assert float(done.stdout.split()[-1]) == pytest.approx(expected, rel=1e-5)


class Batches(ps.Sequence):
    """000 ex1: a Sequence whose attributes have any name, num_batches too."""

    def __init__(self, sizes):
        self.num_batches = len(sizes)
        self.ends = np.cumsum(sizes)
        self.sizes = sizes
        self.calls = []

    def __len__(self):
        return self.num_batches

    def __getitem__(self, index):
        self.calls.append(index)
        ids = np.arange(self.ends[index] - self.sizes[index], self.ends[index])
        return samples()["x"][ids], samples()["y"][ids]

    def steps(self):
        return [np.arange(end - size, end) for size, end in zip(self.sizes, self.ends)]


def fit_sequence(batches, replicas, epochs=1, shuffle_seed=None):
    ds = ps.from_sequence(batches)
    if shuffle_seed is not None:
        ds = ds.shuffle(seed=shuffle_seed)
    strategy = strategy_of(replicas)
    model = under(strategy)
    data = ps.keras.dataset(ps.Loader(ds)).to_tf(strategy)
    ps.keras.fit(model, data, epochs=epochs, verbose=0)
    return weights_of(model)


def test_a000_sequence_uneven():
    batches = Batches([3] * 7)
    np.testing.assert_allclose(fit_sequence(batches, 2), trained_by_hand(batches.steps())[0],
                               **CLOSE)


def test_a000_sequence_even():
    batches = Batches([4] * 7)
    np.testing.assert_allclose(fit_sequence(batches, 2), trained_by_hand(batches.steps())[0],
                               **CLOSE)
    assert len(batches.calls) <= 8  # 7, and one again at the end: others need 15


@pytest.mark.parametrize("seed", range(3))
def test_a000_sequence_odd_batch(seed):
    batches = Batches([4] * 6 + [3])
    order = [batch[0][0].tolist() for batch in
             ps.Loader(ps.from_sequence(batches, check=False).shuffle(seed=seed))]
    steps = [ids for first in order for ids in batches.steps()
             if samples()["x"][ids[0]].tolist() == first]
    assert len(steps) == 7
    np.testing.assert_allclose(fit_sequence(batches, 2, shuffle_seed=seed),
                               trained_by_hand(steps)[0], **CLOSE)


def test_c_workers_epochs():
    """Reshuffled in every epoch, with workers: no sample is missing."""
    batches = Batches([4] * 25)
    spec = (ps.Field("float32", (4,)), ps.Field("float32", (1,)))
    ds = ps.from_sequence(batches, spec=spec, check=False).shuffle(seed=3)
    loader, passes = ps.Loader(ds), []
    for _ in range(3):
        rows = [batch[0].copy() for batch in loader]
        passes.append([next(ids for ids in batches.steps()
                            if (samples()["x"][ids] == step).all()) for step in rows])
    assert all(sorted(np.concatenate(each)) == list(range(100)) for each in passes)
    assert [ids[0] for ids in passes[0]] != [ids[0] for ids in passes[1]]
    strategy = strategy_of(2)
    model = under(strategy)
    worked = ds.map(lambda x, y: (x, y), row_wise=True, workers=2)
    data = ps.keras.dataset(ps.Loader(worked)).to_tf(strategy)
    ps.keras.fit(model, data, epochs=3, verbose=0)
    np.testing.assert_allclose(weights_of(model), trained_by_hand(sum(passes, []))[0], **CLOSE)


def test_a001_take():
    strategy = strategy_of(2)
    ds = ps.from_tensor_slices(samples()).shuffle(seed=7).batch(16).take(5)
    data = ps.keras.dataset(ps.Loader(ds), x="x", y="y").to_tf(strategy)
    model = under(strategy)
    model.fit(data, shuffle=False, verbose=0)
    np.testing.assert_allclose(weights_of(model), trained_by_hand(planned(1)[0][:5])[0], **CLOSE)


def test_b_drop_remainder():
    strategy = strategy_of(3)
    data = keras_data(tail="drop").to_tf(strategy)
    model = under(strategy)
    model.fit(data, shuffle=False, verbose=0)
    np.testing.assert_allclose(weights_of(model), trained_by_hand(planned(1)[0][:6])[0], **CLOSE)
    assert data.loader.plan.tail_cost["dropped"] == 7


@pytest.mark.parametrize("replicas", [1, 2, 4])
def test_b_ghost_step(replicas):
    """A stream of 7 steps, Adam: the requested steps, the same on every replica."""
    def rows():
        for row in zip(samples()["x"][:112 - 9], samples()["y"]):
            yield row

    def trained(dataset, **options):
        strategy = strategy_of(replicas)
        with strategy.scope():
            model = linear(keras.optimizers.Adam(0.01))
        data = ps.keras.dataset(ps.Loader(dataset.batch(16)), **options).to_tf(strategy)
        ps.keras.fit(model, data, epochs=3, verbose=0)
        return weights_of(model), int(model.optimizer.iterations.numpy())

    streamed = trained(ps.from_generator(rows), steps_per_epoch=7)
    known = trained(ps.from_tensor_slices((samples()["x"], samples()["y"])))
    assert (streamed[0] == known[0]).all() and streamed[1] == known[1] == 21


def test_d_getitem_raises():
    class Broken(Batches):
        def __getitem__(self, index):
            if index == 3:
                raise OSError("no such file")
            return super().__getitem__(index)

    with pytest.raises(OSError, match="no such file") as raised:
        fit_sequence(Broken([4] * 7), 2)
    assert "step 3" in raised.value.__notes__[0]
